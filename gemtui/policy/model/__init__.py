"""The words of the policy engine: rules, calls, decisions, and the tools there are."""
