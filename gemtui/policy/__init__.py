"""The CLI's policy engine, reimplemented: rules, decisions, files and checks.

It also replays recorded calls and suggests rules.
"""
