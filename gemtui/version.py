"""The version of this program, with which its packages are built."""

VERSION = "0.1.0"
"""Asking the installed package for its version takes longer than most commands' own modules."""
