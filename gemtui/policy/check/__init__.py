"""Checks of policy files: errors, and rules that do something unexpected."""
