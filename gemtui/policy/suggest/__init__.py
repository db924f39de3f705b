"""Policies and recorded calls: replays, and rules proposed from calls."""
