"""Simulating a draft policy on calls, and proposing rules from past sessions."""
