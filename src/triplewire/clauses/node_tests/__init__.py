"""Conditions on one node, numbered, behind look-ups that find the nodes of which they hold: `table` joins them all."""
