"""Events: how they are made, read again, owed to targets, and removed.

They are made of publications in one process at a time (`matching`, `stories`, `culprit`), read again (`event_log`),
owed to targets (`delivery_log`), and removed with what they tell of (`removal`).
"""
