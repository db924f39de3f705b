"""Full-text search over stored sessions."""
