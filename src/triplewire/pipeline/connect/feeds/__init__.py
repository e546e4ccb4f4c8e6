"""Feeds that are polled: `lists` says which, `fetch` gets one, `poller` does so politely, `inbox` keeps what came, and
`pruning` removes what was read long ago."""
