"""Events: made of publications in one process at a time (`matching`, `stories`, `culprit`), read again (`event_log`),
owed to targets (`delivery_log`), and removed with what they tell of (`removal`).
"""
