"""What flows through Triplewire: RDF terms, publications, matches. Subscriptions are in `triplewire.ir`."""
