"""Checks of policy files: errors, and rules that do not do what they seem to say."""
