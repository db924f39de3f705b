"""The files that sessions have written, and patches made from those changes."""
