"""The real effects of a tool call: the file it writes, the text, the command.

Gemini CLI changes paths, texts and commands after a person has been asked. Everything that shows a
call, compares it with the disk or undoes it uses this package (assets/gemini-cli.md#effects).
"""
