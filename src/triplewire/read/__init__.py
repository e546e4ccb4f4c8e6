"""Publications from files and bytes: RDF syntaxes and feeds, recognised by content, behind a guard."""
