"""The CLI's policy engine rebuilt: rules, decisions, policy files, checks, suggestions."""
