"""Showing and editing rules, and the policy that is being edited."""
