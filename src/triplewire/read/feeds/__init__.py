"""Turns feeds into publications: RSS, Atom and JSON Feed, in the RSS 1.0 vocabulary (semantics, section 1)."""
