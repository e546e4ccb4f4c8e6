"""A stream as a process of its own, which kills itself at a point of the commit: killed.py SOURCE OUT POINT SINKS.

SINKS may be left out. It is a JSON file: addresses for `matches` and `letters`, the file of connections (`connect`),
and `jars` for Spark.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

from pipeline.runs import index_of
from triplewire.engine import Engine
from triplewire.net.addresses import Connections, address
from triplewire.notify.rows import LETTER, MATCH
from triplewire.pipeline.connect.delivery import Delivery, sink
from triplewire.pipeline.output import Output
from triplewire.pipeline.run import PipelineRun
from triplewire.pipeline.session import QUICK_START, session_for


def main(source: str, folder: str, point: str, sinks: str = "") -> None:
    config, delivery = dict(QUICK_START), Delivery()
    if sinks:
        given = json.loads(Path(sinks).read_text(encoding="utf-8"))
        connections = Connections.read(Path(given["connect"]))
        config["spark.jars"] = ",".join(given["jars"])
        delivery.matches = [sink(address(text, connections), MATCH) for text in given["matches"]]
        delivery.letters = [sink(address(text, connections), LETTER) for text in given["letters"]]

    def reached(name: str) -> None:
        if name == point:
            os.kill(os.getpid(), signal.SIGKILL)

    output = Output(folder)
    output.at = reached
    output.prepare(Path(source), True)
    engine = Engine(matcher="reference")
    engine.subscribe("ASK { ?s <urn:p> ?o }", id="any")
    job = PipelineRun(source, index_of(engine, output), output, delivery=delivery)
    with session_for("killed", master="local[1]", config=config, log=output.log) as spark:
        job.stream(spark, settle=0)


if __name__ == "__main__":
    main(*sys.argv[1:])
