"""Kernels that join patterns: components, the join network, stars, the search, and the rows that come of them."""
