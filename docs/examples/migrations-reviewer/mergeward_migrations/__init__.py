"""A reviewer of database migrations for Mergeward."""
