"""How calls of operators are made: at once, isolated, with a circuit breaker and a budget. The entry is `caller`."""
