"""The files of Gemini CLI's store, by name and `stat`: found, watched, and assigned to projects."""
