"""The actual effects of a tool call: the file and contents, or the command.

Gemini CLI changes paths, contents and commands after the user has been asked. All code that shows a
call, compares it with the disk or undoes it uses this package (assets/gemini-cli.md#effects).
"""
