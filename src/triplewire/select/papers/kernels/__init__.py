"""The compiled loops of the papers' matchers: hash tables and lists, binding tables and their join, and one file each
for the structures."""
