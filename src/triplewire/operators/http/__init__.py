"""Operators behind HTTP: services of the user's own. `declared` reads them from TOML, `service` asks them."""
