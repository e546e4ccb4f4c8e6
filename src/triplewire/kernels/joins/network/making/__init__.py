"""The join network of a segment is made from its clauses: each step and each node is written down once."""
