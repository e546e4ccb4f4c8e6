"""The values that terms stand for: numbers, dates, strings; how they are read, compared, cast and computed with."""
