"""Policies and the past: calls replayed under a policy, and rules proposed from calls."""
