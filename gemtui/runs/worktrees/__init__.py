"""Git worktrees for runs: created, listed, applied, and removed without starting programs."""
