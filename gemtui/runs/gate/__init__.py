"""The gate of a run: what it asks the user, what answers do, and what they allow later."""
