"""Standing queries over RDF and feeds."""
