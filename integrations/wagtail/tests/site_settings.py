"""The example site, as the tests have it: no thread, quick passwords, mail in memory."""

from __future__ import annotations

import tempfile
from pathlib import Path

from coast.settings import *  # noqa: F403
from coast.settings import DATABASES, TRIPLEWIRE

_folder = Path(tempfile.mkdtemp(prefix="wagtail-triplewire-"))
DATABASES["default"]["OPTIONS"]["init_command"] = "PRAGMA synchronous=OFF;"
DATABASES["default"] |= {"NAME": _folder / "site.db", "TEST": {"NAME": _folder / "test.db"}}
PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
EMAIL_BACKEND = "django.core.mail.backends.locmem.EmailBackend"
DEBUG = False
SECRET_KEY = "of the tests"
ALLOWED_HOSTS = ["*"]
MEDIA_ROOT = _folder / "media"
TRIPLEWIRE = {**TRIPLEWIRE, "THREAD": False, "SERVICE": "http://127.0.0.1:9", "TOKEN_FILE": "", "TOKEN": "none"}
