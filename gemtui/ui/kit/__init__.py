"""Building blocks that all panes share: keys, dialogs, lists, notices, app base."""
