"""The reference meaning of a subscription: read it from `evaluate` down."""
