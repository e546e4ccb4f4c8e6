"""Subscriptions in normal form as flat arrays, whatever matcher indexes them, and what a batch is to their tests
(`features`)."""
