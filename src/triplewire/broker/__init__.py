"""The broker: subscriptions that last, publications that are kept, and an event for each match, stored with its cause.

`broker` is what doors call; `subscriptions` keeps an engine in step with the store; `matching` turns publications into
events; `publications` reads and keeps contents; `tickets` says who may do what. The doors: `triplewire.service`.
"""
