"""Transcripts on the screen: messages and cards as lines, and a scrolling view."""
