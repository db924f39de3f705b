"""Transcripts on screen: messages and tool calls as lines, in a scrollable view."""
