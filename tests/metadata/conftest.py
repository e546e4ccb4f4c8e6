"""The databases of a registry: what is tested for one is tested for both."""

from broker.conftest import database_url, new_database, server

__all__ = ["database_url", "new_database", "server"]
