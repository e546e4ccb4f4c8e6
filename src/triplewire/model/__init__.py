"""The data model: RDF terms, publications, matches, operators. Subscriptions are in `triplewire.ir`."""
