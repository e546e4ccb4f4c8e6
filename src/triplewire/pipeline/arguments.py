"""What callers hand to the pipeline, checked before Spark is asked for anything. It imports no Spark."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

from triplewire.argument_checks import expect, expect_callable, expect_path, expect_text, refuse
from triplewire.config import Settings
from triplewire.engine import Engine
from triplewire.errors import ArgumentError
from triplewire.ir.subscription import Subscription
from triplewire.operators.files import OperatorFile
from triplewire.pipeline.filter import IndexFilter
from triplewire.read.sources import SPLITS

_COLUMNS = ("id", "triples")


def check_rows(where: str, df: Any) -> None:
    """Raises `ArgumentError` where this is no data frame of Spark with publications."""
    remedy = "publications(spark, path) makes one"
    if not hasattr(df, "mapInArrow"):
        raise refuse(where, "a data frame of Spark", df, remedy)
    missing = [name for name in _COLUMNS if name not in df.columns]
    if missing:
        what = f"the data frame has no column {' and no column '.join(missing)}, only {', '.join(df.columns)}"
        raise ArgumentError(what, source=where, remedy=remedy)


def check_session(where: str, spark: object) -> None:
    """Raises `ArgumentError` where this is no Spark session."""
    if not hasattr(spark, "readStream"):
        raise refuse(where, "a Spark session", spark, "spark_session() starts one")


def check_reading(path: object, split: object, settings: object) -> None:
    """Raises `ArgumentError` where an argument of `publications` is wrong."""
    expect_path("publications(path)", path)
    if split not in SPLITS:
        raise refuse("publications(split=...)", " or ".join(SPLITS), split)
    _check_settings("publications", settings)


def check_session_arguments(name: object, master: object, config: Mapping[Any, Any] | None, log: object) -> None:
    """Raises `ArgumentError` where an argument of `spark_session` is wrong."""
    expect_text("spark_session(name)", name)
    expect_text("spark_session(master=...)", master)
    if config is not None:
        expect("spark_session(config=...)", config, Mapping, "a mapping of Spark's settings")
    if log is not None:
        expect_path("spark_session(log=...)", log)


def check_subscriptions(subscriptions: object) -> None:
    """Raises `ArgumentError` where these are no subscriptions, nor files of them."""
    where = "match_publications(subscriptions)"
    wanted = "a path, a Subscription, several of these, or an Engine"
    single = (str, os.PathLike, Subscription, Engine, IndexFilter)
    if isinstance(subscriptions, single):
        return
    if isinstance(subscriptions, bytes) or not isinstance(subscriptions, Iterable):
        raise refuse(where, wanted, subscriptions)
    if isinstance(subscriptions, list | tuple | set | frozenset):  # others are read once
        for entry in subscriptions:
            expect(where, entry, (str, os.PathLike, Subscription), wanted, "parse(text) makes a Subscription")


def check_compiling(
    taxonomy: object, operators: object, settings: object, on_refusal: object, on_warning: object = None
) -> None:
    """Raises `ArgumentError` where an argument of `compile_filter` is wrong."""
    name = "match_publications"
    for path in taxonomy if isinstance(taxonomy, list | tuple) else () if taxonomy is None else (taxonomy,):
        expect_path(f"{name}(taxonomy=...)", path, "it is read on the driver")
    remedy = "triplewire.operators.files.read_operator_files(paths) reads them"
    if not isinstance(operators, list | tuple):
        raise refuse(f"{name}(operators=...)", "a list of operator files", operators, remedy)
    for file in operators:
        expect(f"{name}(operators=...)", file, OperatorFile, "an operator file", remedy)
    _check_settings(name, settings)
    expect_callable(f"{name}(on_refusal=...)", on_refusal)
    expect_callable(f"{name}(on_warning=...)", on_warning)


def _check_settings(name: str, settings: object) -> None:
    if settings is not None:
        expect(f"{name}(settings=...)", settings, Settings, "Settings, or None")
