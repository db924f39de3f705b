"""Apply policies to recorded calls: replay them, and suggest rules for them."""
