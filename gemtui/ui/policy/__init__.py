"""The policy pane: edit a policy, and see its effects and a run's command line."""
