"""The building blocks of all panes: keys, dialogs, lists, notices, and the app."""
