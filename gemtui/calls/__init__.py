"""Determine what a tool call really does: which file it writes or command it runs.

Gemini CLI changes paths, contents and commands after the user has been asked for approval. So all
code that shows a call, compares it with the disk or undoes it uses this package
(assets/gemini-cli.md#effects).
"""
