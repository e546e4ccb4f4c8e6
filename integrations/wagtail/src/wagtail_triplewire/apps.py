"""The app: from when it is ready, what happens to pages is written to the outbox."""

from __future__ import annotations

from django.apps import AppConfig
from django.core.signals import request_started


class TriplewireConfig(AppConfig):
    """Connects the signals of Wagtail."""

    name = "wagtail_triplewire"
    verbose_name = "Triplewire"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        """Imported here, as these need all models."""
        from wagtail_triplewire import sender, signals
        from wagtail_triplewire.conf import conf

        signals.connect()
        if conf().thread:  # in processes that serve, and in no command
            request_started.connect(sender.start_thread)
