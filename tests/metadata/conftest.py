"""The databases of registries and repositories: those of a broker."""

from broker.conftest import database_url, new_database, server

__all__ = ["database_url", "new_database", "server"]
