"""What a tool call really does: the file it writes, the text, the command.

Gemini CLI changes paths, texts and commands after a person has been asked. Whatever shows a call,
compares it with the disk or undoes it asks this package (assets/gemini-cli.md#effects).
"""
