"""gemtui's extension for Gemini CLI: its files, installation, status and removal.

The CLI runs the hooks of an extension in every session of the user (assets/extension.md). They
report to gemtui which sessions are active, archive session files if the vault is on, and let a run
that gemtui started ask a person.
"""
