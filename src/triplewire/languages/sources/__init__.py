"""Subscription files: which there are (`files`), the rows of JSON Lines and Parquet (`rows`), ids met so far
(`ids`); and subscriptions whose texts stay in a database (`tables`)."""
