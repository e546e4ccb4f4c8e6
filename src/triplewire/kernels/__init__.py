"""Compiled loops over flat arrays (Numba). They know numpy and numba, and nothing of ours but where compiled code lies.

Here are those that several stages call; those of one stage are in its own folder `kernels`. Machine code is cached
under a key of the files in all these folders (`triplewire.kernel_cache`): kernels may call helpers of any of them.
`prefetch` is a single instruction and generated with `llvmlite`, the compiler of Numba. Without a compiler
(`NUMBA_DISABLE_JIT=1`) they run as plain Python, with the same results; so they do where no folder can be
written (`triplewire.kernels.shared.compiled.IS_COMPILED`).
"""

from __future__ import annotations

from triplewire.kernel_cache import import_numba

import_numba()

from triplewire.kernels import locator  # noqa: E402  # it imports Numba

locator.register()
