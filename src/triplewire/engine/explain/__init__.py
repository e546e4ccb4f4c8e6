"""Why a pair matched or not.

`explanation` asks part by part and tells of operator calls, `reasons` evaluates pieces and writes the sentences,
`recent` finds the publication of a match.
"""
