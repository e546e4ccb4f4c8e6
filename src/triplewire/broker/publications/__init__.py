"""Publications that are kept: their contents as bytes (`kept_contents`), how they are written once (`accepted`), and
what can be asked of the newest (`window`) and of all of them (`solutions`).
"""
