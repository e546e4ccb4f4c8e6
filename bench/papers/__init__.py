"""The figures of the papers again, with the papers' own matchers: `python -m bench papers`.

`workload` draws what the text describes, `measured` loads a matcher and measures it, `figures` says what each figure
shows and what its paper claims of it, `runner` measures, writes and tells.
"""
