"""Show and edit rules, and hold the policy that is being edited."""
