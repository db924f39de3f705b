"""Replace secrets in sessions that are shared."""
