"""What joins the pipeline to the world outside: files that arrive, Kafka, databases, the inbox of polled feeds.

`arrivals` finds new files, `file_tasks` deals them to tasks, `documents` turns messages and what was polled into
publications, `pruning` removes from the inbox what was read, `globs` gives Spark the names of folders; `delivery` hands
micro-batches (`parts`) to sinks (`kafka`, `jdbc`, and those of `triplewire.notify`); `tables` reads subscriptions from
databases, `topic` watches over the topic that is read.
"""
