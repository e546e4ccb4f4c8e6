"""Where publications come from, and what becomes of what comes.

Sources as owners have them are in `registered_sources`. How they are asked: `polling`, `folder_sources`,
`topic_sources`, `websub_subscriber`. What becomes of what comes: `intake`, `item_subscriptions`.
"""
