"""Agents: how a command-line agent is found, started, supervised and read as a stream of events."""
