"""The screens for undo, redo and fork, used by all panes."""
