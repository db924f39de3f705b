"""Show and edit rules, and hold the policy being edited."""
