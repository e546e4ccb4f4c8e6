"""Commands that say what is there: the version, the operators."""
