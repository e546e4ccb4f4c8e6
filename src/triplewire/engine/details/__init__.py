"""What matches have beside their rows: the ids of subscriptions, and the graphs of CONSTRUCT queries."""
