"""The run pane: a prompt goes in, a transcript grows, files are written, a key stops it."""
