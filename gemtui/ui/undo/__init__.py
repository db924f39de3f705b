"""Undo, redo and fork of sessions on the screen, for all panes."""
