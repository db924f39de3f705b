"""The screens for undo, redo and fork of sessions, for all panes."""
