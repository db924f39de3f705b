"""Shared building blocks of all panes: keys, dialogs, lists, notices, app base."""
