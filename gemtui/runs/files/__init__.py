"""The files that a run changes, from its calls, from file events and from the disk."""
