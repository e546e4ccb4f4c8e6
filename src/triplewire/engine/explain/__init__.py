"""Why a pair matched or not: `explanation` asks part by part, `pieces` evaluates, `reasons` writes the sentences."""
