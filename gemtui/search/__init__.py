"""Full-text search in stored sessions."""
