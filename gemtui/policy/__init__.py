"""The CLI's policy engine, rebuilt: rules, decisions, files, checks, suggestions."""
