"""Conversion of text to styled lines, independent of widgets."""
