"""A second site, as a process: tables, people and pages, a request of ben's, a sender, and a server until it is ended.

second_site.py FOLDER PORT SERVICE TOKEN QUERY
"""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path
from wsgiref.simple_server import make_server

import django
from django.conf import settings


class NoMigrations:
    """Of no app: tables are made as the models are."""

    def __contains__(self, app: str) -> bool:
        return True

    def __getitem__(self, app: str) -> None:
        return None


if __name__ == "__main__":
    folder, port, service, token, query = sys.argv[1:]
    os.environ["DJANGO_SETTINGS_MODULE"] = "site_settings"
    address = f"http://127.0.0.1:{port}"
    settings.DATABASES["default"]["NAME"] = Path(folder) / "site.db"
    settings.MIGRATION_MODULES = NoMigrations()
    settings.WAGTAILADMIN_BASE_URL = address
    settings.TRIPLEWIRE = {**settings.TRIPLEWIRE, "SERVICE": service, "TOKEN": token, "PULL": 3_600}
    django.setup()

    from django.contrib.auth import get_user_model
    from django.core.management import call_command
    from django.core.wsgi import get_wsgi_application

    from conftest import _fill
    from wagtail_triplewire import sender
    from wagtail_triplewire.models import Request

    call_command("migrate", run_syncdb=True, verbosity=0)
    _fill()
    ben = get_user_model().objects.get(username="ben")
    Request.objects.create(user=ben, kind="query", title="mine", query=query)
    threading.Thread(target=sender.run, args=(threading.Event(),), daemon=True).start()
    make_server("127.0.0.1", int(port), get_wsgi_application()).serve_forever()
