"""What runs left in an output folder: the committed matches and what was counted, read without Spark; and which matches
a stream has told."""
