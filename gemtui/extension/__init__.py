"""gemtui's extension for Gemini CLI: its files, installation, status and removal.

The CLI runs the extension's hooks in every session of the user (assets/extension.md). The hooks
report active sessions to gemtui, archive session files if the vault is on, and let runs that gemtui
started ask the user for approval.
"""
