"""RDF text to terms and publications: `parse` calls the parser, `split` makes publications of statements."""
