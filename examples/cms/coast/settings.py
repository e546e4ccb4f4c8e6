"""The settings of the example site: Wagtail on SQLite, for a machine of one's own. The last lines are what a site adds
for the app."""

from __future__ import annotations

import os
from pathlib import Path

HERE = Path(__file__).resolve().parents[1]
DATA = Path(os.environ.get("CMS_DATA", HERE.parents[1] / "out" / "cms"))
PORT = os.environ.get("PORT", "8000")

DEBUG = True  # Django serves the style sheets itself
SECRET_KEY = "of an example, which nobody but its own machine reaches"
ALLOWED_HOSTS = ["127.0.0.1", "localhost"]
ROOT_URLCONF = "coast.urls"
INSTALLED_APPS = [
    "pages",
    "wagtail_triplewire",
    "wagtail.contrib.redirects",
    "wagtail.sites",
    "wagtail.users",
    "wagtail.snippets",
    "wagtail.documents",
    "wagtail.images",
    "wagtail.search",
    "wagtail.admin",
    "wagtail",
    "modelcluster",
    "taggit",
    "django_filters",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": DATA / f"site-{PORT}.db",  # at another port it is another site
        "OPTIONS": {"timeout": 20, "transaction_mode": "IMMEDIATE"},  # a writer waits for the one before
    }
}
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
LANGUAGE_CODE = "en"
USE_TZ = True
TIME_ZONE = "UTC"
STATIC_URL = "/static/"
MEDIA_ROOT, MEDIA_URL = DATA / "media", "/media/"
LOGIN_URL, LOGIN_REDIRECT_URL, LOGOUT_REDIRECT_URL = "/sign-in/", "/triplewire/profile/", "/"
EMAIL_BACKEND = "django.core.mail.backends.filebased.EmailBackend"
EMAIL_FILE_PATH = DATA / "mail"
WAGTAIL_SITE_NAME = "Kestrel Coast"
WAGTAILADMIN_BASE_URL = f"http://127.0.0.1:{PORT}"

TRIPLEWIRE = {
    "SERVICE": f"http://127.0.0.1:{os.environ.get('SERVICE_PORT', '8750')}",
    "TOKEN_FILE": DATA / f"site-{PORT}.token",
    "TRANSPARENT": {"pages.Thread": ["replies"], "pages.Reply": ["replies"], "pages.WikiPage": ["page"]},
    "CATEGORIES": "pages.Category",
    "DOCUMENTS": {
        "Event": {
            "type": "https://schema.org/Event",
            "fields": {
                "Name": "https://schema.org/name",
                "Place": "https://schema.org/location",
                "Begins": "https://schema.org/startDate",
                "Page": "https://schema.org/url",
            },
        }
    },
    "THREAD": True,
    "DEVELOPMENT": True,
    "GUEST_FILE": DATA / "guest.token",
}
