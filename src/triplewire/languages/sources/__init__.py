"""Subscription files: which there are (`files`), the rows of JSON Lines and Parquet and the ids met so far (`rows`);
and subscriptions whose texts stay in a database (`tables`)."""
