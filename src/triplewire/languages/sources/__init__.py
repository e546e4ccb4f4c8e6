"""Subscription files, and subscriptions whose texts stay in a database.

Which files there are: `files`. The rows of JSON Lines and Parquet and the ids met so far: `rows`. Databases: `tables`.
"""
