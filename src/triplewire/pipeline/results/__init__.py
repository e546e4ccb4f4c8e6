"""What runs left in an output folder, read without Spark: the committed matches, and what was counted."""
