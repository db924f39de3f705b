"""The vault: session files that stay when Gemini CLI removes its own (assets/vault.md)."""
