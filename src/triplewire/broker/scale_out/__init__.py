"""Matching on Spark in place of the broker (docs/scale-out.md has the picture).

Here are the index that the pipeline follows, and events of the matches that it finds.
"""
