"""What all panes are made of: keys, dialogs, lists, notices, and the app as screens know it."""
