"""Archive, back up and restore session files that Gemini CLI may delete."""
