"""The policy pane: a policy's rules, their effects, and the command of a run."""
