"""Full-text search across stored sessions."""
