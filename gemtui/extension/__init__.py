"""gemtui's extension for Gemini CLI: its files, installation, status and removal.

The CLI runs the extension's hooks in all of the user's sessions (assets/extension.md). The hooks
report active sessions to gemtui, archive session files if the vault is on, and let runs started by
gemtui ask the user for approval.
"""
