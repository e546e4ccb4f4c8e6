"""The papers' workloads as seeded generators; `catalogue` has them by name."""
