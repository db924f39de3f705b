"""What a run may do."""
