"""Deliveries of events to targets, each at least once, over one schedule that lasts.

`schedule` says when and which, `channels` how: `webhooks`, `mail`, `topics` of Kafka, and `messengers`. What is owed
stands in the store from the transaction of its event on (`triplewire.broker.events.matching`), and then in its log
(`triplewire.broker.events.delivery_log`).
"""
