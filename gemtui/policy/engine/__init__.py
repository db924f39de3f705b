"""The CLI's decision on a call, and its reasons."""
