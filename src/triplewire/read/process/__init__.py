"""The parsing process, in which all untrusted text is parsed. `client` sends documents to it, `worker` runs in it."""
