"""Kernels that join patterns: components, products, solutions, and the rows that come of them."""
