"""A saved engine. `contents` saves and loads one; `directory` writes and reads the files, `manifest` lists them.

`segment_files`: a segment as files; `arrays`: flat arrays in a file; `rows`: subscriptions as rows.
"""
