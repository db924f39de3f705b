"""Determine what a tool call actually does: the file it writes, or its command.

Gemini CLI changes paths, contents and commands after the user has been asked. All code that shows a
call, compares it with the disk or undoes it uses this package (assets/gemini-cli.md#effects).
"""
