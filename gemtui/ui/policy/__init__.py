"""The policy pane: a file's rules, the resulting command, and their effects."""
