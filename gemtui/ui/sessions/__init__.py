"""The sessions pane: the list of stored sessions, and the open session beside it."""
