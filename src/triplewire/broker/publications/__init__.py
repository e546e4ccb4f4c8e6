"""Publications that are kept, and what can be asked of them.

Their contents are bytes (`kept_contents`), and written once (`accepted`). The newest can be asked (`window`), and all
of them (`solutions`).
"""
