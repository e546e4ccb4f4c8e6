"""For all tests: a generated example may take as long as it needs, since the first one may have to compile kernels."""

from __future__ import annotations

from hypothesis import settings

settings.register_profile("triplewire", deadline=None)
settings.load_profile("triplewire")
