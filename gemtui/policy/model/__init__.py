"""The vocabulary of the policy engine: rules, calls, decisions and tools."""
