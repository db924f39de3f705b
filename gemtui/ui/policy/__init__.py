"""The policy pane: the rules of one file, what they become, and what they mean."""
