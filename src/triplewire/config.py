"""All limits of the engine, in one frozen dataclass.

An error names the setting whose limit was passed. Only the command line reads the environment
(`Settings.from_environment`): `TRIPLEWIRE_MAX_BINDINGS=50` sets `max_bindings`.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Mapping
from dataclasses import dataclass

from triplewire.errors import TriplewireError

PREFIX = "TRIPLEWIRE_"
MOST = 2**62  # operating systems take no larger ones
MOST_SECONDS = 10**9


@dataclass(frozen=True, slots=True)
class Settings:
    """Limits, with their units. All are positive integers."""

    # subscriptions
    max_query_bytes: int = 64 * 1024  # UTF-8 bytes of one subscription's text
    max_query_depth: int = 64  # nested groups, parentheses, operators
    max_branches: int = 64  # branches of the disjunctive normal form
    max_patterns: int = 256  # triple patterns of one subscription

    merge_subscriptions: int = 1_024  # of the last segment, made anew for new ones; with more the next begins

    # evaluation of one subscription against one publication
    max_bindings: int = 1_000  # distinct bindings of a match; of one with more, `truncated` says so
    # steps of work on one pair, some microseconds each: candidate triples and rows, characters that functions read and
    # write; with more, the pair is refused, and where it is known to match, its bindings are cut
    max_steps: int = 2_000_000
    operator_seconds: int = 10  # one call of an operator; if it takes longer, the call is unknown
    max_regex_bytes: int = 1_024  # UTF-8 bytes of a regular expression

    # inputs
    max_input_bytes: int = 512 * 1024 * 1024  # one file, after decompression
    max_document_bytes: int = 16 * 1024 * 1024  # one document that is one publication or feed (all but N-Quads, TriG)
    max_triples: int = 100_000  # triples of one publication
    max_literal_bytes: int = 1024 * 1024
    max_iri_bytes: int = 8 * 1024
    max_xml_depth: int = 256
    max_json_depth: int = 64
    max_turtle_depth: int = 128  # nested [ ] and ( )
    max_entities: int = 64  # entity declarations of one XML document
    max_entity_bytes: int = 1_024  # the value of one entity
    parse_seconds: int = 30  # one document in the parsing worker
    parse_bytes: int = 2 * 1024 * 1024 * 1024  # address space of the parsing worker

    @classmethod
    def from_environment(cls, environment: Mapping[str, str] | None = None) -> Settings:
        """The defaults, overridden by `TRIPLEWIRE_<NAME>` variables. Raises `TriplewireError` where a value is no
        number or out of range."""
        environment = os.environ if environment is None else environment
        changes = {}
        for field in dataclasses.fields(cls):
            name = PREFIX + field.name.upper()
            text = environment.get(name)
            if text is None:
                continue
            most = MOST_SECONDS if field.name.endswith("_seconds") else MOST
            if not text.isdecimal() or len(text) > len(str(MOST)) or not 1 <= int(text) <= most:
                raise TriplewireError(
                    f"{text!r} is not a number from 1 to {most}", source=name, remedy="use digits only"
                )
            changes[field.name] = int(text)
        return cls(**changes)
