"""A saved engine.

`contents` saves and loads one; `directory` writes and reads the files and the manifest that lists them.
`segment_files`: a segment as files; `rows`: subscriptions as rows.
"""
