"""The CLI's policy engine, reimplemented: rules, decisions, files and checks.

The package also replays recorded calls and suggests rules.
"""
