"""What the grammars of several languages share: tokens, names, full text, conditions, quantities, calls."""
