"""A stream as a process of its own, which kills itself at a named point of the commit: killed.py SOURCE OUT POINT."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

from triplewire.engine import Engine
from triplewire.pipeline.filter import PackedEngine
from triplewire.pipeline.run import PipelineRun
from triplewire.pipeline.session import QUICK_START, session_for
from triplewire.pipeline.sinks import Output


def main(source: str, folder: str, point: str) -> None:
    def reached(name: str) -> None:
        if name == point:
            os.kill(os.getpid(), signal.SIGKILL)

    output = Output(folder)
    output.at = reached
    output.prepare(Path(source), True)
    engine = Engine(matcher="reference")
    engine.subscribe("ASK { ?s <urn:p> ?o }", id="any")
    job = PipelineRun(source, PackedEngine.of(engine), output)
    with session_for("killed", master="local[1]", config=QUICK_START, log=output.log) as spark:
        job.stream(spark, settle=0)


if __name__ == "__main__":
    main(*sys.argv[1:])
