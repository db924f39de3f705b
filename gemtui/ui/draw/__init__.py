"""Conversion of text to styled lines, without any widgets."""
