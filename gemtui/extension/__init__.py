"""gemtui's extension for Gemini CLI: its files, and what installs, checks and removes it.

The CLI runs the hooks of an extension in every session of the user (assets/extension.md). They tell
gemtui which sessions go on, keep session files where the vault is on, and let a run that gemtui
started ask a person.
"""
