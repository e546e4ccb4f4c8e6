"""The broker: subscriptions that last, publications that are kept, and an event for each match, stored with its cause.

`broker` is what doors call, `owners` and `tickets` say who may do what. Rooms: `subscriptions`, `publications`,
`events`, `incoming` (sources), `feeds` (every subscription as an address), `network` (of brokers), `scale_out`
(matching on Spark). The doors: `triplewire.service`.
"""
