"""Subscriptions that last, from the first try to the end.

They are tried out and priced (`trial`), registered (`registration`), followed by an engine (`followed`,
`saved_engine`), delivered to (`targets`), and suspended where they cost too much (`quarantine`).
"""
