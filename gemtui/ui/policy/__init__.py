"""The policy pane: edit a policy, and see its effects and the command of a run."""
