"""Determine whether a rule matches a call's tool and arguments."""
