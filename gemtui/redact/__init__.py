"""Replace secrets in sessions that are to be shared."""
