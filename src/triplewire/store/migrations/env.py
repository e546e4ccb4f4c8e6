"""Runs revisions on the connection that `triplewire.store.migrate` gives."""

from alembic import context

from triplewire.store.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()
