"""Feeds that are polled: `lists` says which, `fetch` gets one, `poller` does so politely, `inbox` keeps what came."""
