"""The sessions pane: the list of stored sessions with the open session beside it."""
