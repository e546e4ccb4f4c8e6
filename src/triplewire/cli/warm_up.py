"""`triplewire warm-up`: compile all kernels now, into a folder that can be shared and shipped."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Annotated

import typer

from triplewire import kernel_cache, plugins
from triplewire.cli.report import say
from triplewire.errors import TriplewireError


def warm_up_command(
    folder: Annotated[
        Path | None,
        typer.Option("--cache", metavar="DIR", help="Where the machine code goes; default: TRIPLEWIRE_CACHE."),
    ] = None,
) -> None:
    """
    \b
    triplewire warm-up
    TRIPLEWIRE_CACHE=/opt/triplewire-cache triplewire warm-up    # in an image; set the variable at run time as well

    Compile the matching loops for this processor, a few minutes. Without it, the first matches are interpreted and
    compilation goes on in the background. Set NUMBA_CPU_NAME=generic for machines of different processors.
    """
    if folder is not None:
        os.environ[kernel_cache.FOLDER] = str(folder)
    place, named = kernel_cache.folder(), os.environ.get(kernel_cache.FOLDER)
    if place is None or (named and not place.is_relative_to(Path(named).absolute())):
        raise typer.BadParameter(f"{named or 'the folder for machine code'} cannot be written", param_hint="--cache")
    # --help does without the engine and Numba behind it
    from triplewire.engine.tiers.kernels import KERNELS

    begun, count = time.perf_counter(), 0

    def compiled(name: str) -> None:
        nonlocal count
        count += 1
        if sys.stderr.isatty():
            print(f"\r\x1b[Kcompiled {count}: {name}", end="", file=sys.stderr, flush=True)

    list(plugins.loaded("matcher"))  # so that their kernels are known
    KERNELS.compiled = compiled
    KERNELS.warn = lambda text: None if KERNELS.refused else say(text)  # which ends the command
    if not KERNELS.wait():
        if KERNELS.refused is not None:
            raise OSError(KERNELS.refused.errno, KERNELS.refused.strerror, str(place))
        raise TriplewireError("the kernels are not to be used: TRIPLEWIRE_TIER says so")
    if sys.stderr.isatty():
        print("\r\x1b[K", end="", file=sys.stderr)
    what = f"{count} kernels compiled" if count else "all kernels were compiled"
    say(f"{what} ({time.perf_counter() - begun:.1f} s): {place}")
