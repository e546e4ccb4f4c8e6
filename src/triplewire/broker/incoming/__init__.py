"""Where publications come from: sources as owners have them (`registered_sources`), how they are asked (`polling`,
`folder_sources`, `topic_sources`, `websub_subscriber`), and what becomes of what comes (`intake`,
`item_subscriptions`).
"""
