"""Matching on Spark in place of the broker: the index that the pipeline follows, and events of the matches that it
finds. The picture: docs/scale-out.md.
"""
