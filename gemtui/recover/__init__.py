"""Rebuild a file from the writes, edits and reads in stored sessions."""
