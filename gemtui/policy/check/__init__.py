"""Check policy files for errors, and for rules that do something unexpected."""
