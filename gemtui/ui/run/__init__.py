"""The run pane: the prompt, the live transcript and the list of changed files."""
