"""The CLI's decision for a call, and its reasons."""
