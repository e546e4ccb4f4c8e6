"""What is measured of graph patterns that join: targets (`figures`), and CLIPS on the same subscriptions (`clips`)."""
