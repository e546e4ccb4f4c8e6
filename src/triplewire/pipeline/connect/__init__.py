"""What joins the pipeline to the world outside: files that arrive, Kafka, databases, webhooks, polled feeds.

`addresses` reads what a user names, `arrivals` finds new files, `file_tasks` deals them to tasks, `documents` turns
messages into publications, `delivery` hands micro-batches (`parts`) to sinks (`kafka`, `jdbc`, `sqlite_file`,
`webhook`), `tables` reads subscriptions from databases, `globs` gives Spark the names of folders, `feeds` polls.
"""
