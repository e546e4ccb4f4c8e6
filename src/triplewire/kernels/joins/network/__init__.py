"""The join network: components of clauses are decided together. What is common to several is solved once."""
