"""One process of the Gemini CLI: where it is installed and which version it is."""
