"""Transcripts on screen: messages and cards as lines, in a scrollable view."""
