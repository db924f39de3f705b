"""One process of an agent: options to a command, a supervised run, its output as events."""
