"""The run pane: a prompt, the growing transcript, the files that are written."""
