"""Replace secrets in sessions before they are shared."""
