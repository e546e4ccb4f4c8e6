"""`triplewire conformance`: do a service and a site do what docs/cms-protocol.md says?"""
