"""The run pane: a prompt, the growing transcript, the list of written files."""
