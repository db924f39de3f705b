"""Rebuild a file from what stored sessions wrote, edited and read of it."""
