"""Conversion of text to lines for the screen, without widgets."""
