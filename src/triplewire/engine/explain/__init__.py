"""Why a pair matched or not: `explanation` asks part by part, `pieces` evaluates, `reasons` writes the sentences,
`calls` tells of operator calls, `recent` finds the publication of a match."""
