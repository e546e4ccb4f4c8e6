"""Publications and matches as flat Arrow columns. `schema` has the columns and the way in and out."""
