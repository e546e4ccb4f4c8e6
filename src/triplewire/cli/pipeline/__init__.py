"""`triplewire pipeline`: the commands that run on Spark. The pipeline itself: `triplewire.pipeline`."""
