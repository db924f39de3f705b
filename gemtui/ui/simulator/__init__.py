"""Simulation of a draft policy on calls, and rules proposed from past sessions."""
