"""A watch: sources are polled, what is new is matched, and each match is told once, in one process without Spark.

`files` and `triplewire.sources` fill the inbox, `watch` matches what lies there and tells sinks (`triplewire.notify`),
`watch_folder` is the folder of a watch: its lock, what was told, what was counted. The command line:
`triplewire.cli.watch`.
"""

from __future__ import annotations

from triplewire.watch.files import FileSource
from triplewire.watch.watch import Source, Watch
from triplewire.watch.watch_folder import Progress, WatchFolder, WatchStatus

__all__ = ["FileSource", "Progress", "Source", "Watch", "WatchFolder", "WatchStatus"]
