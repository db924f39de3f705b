"""The chats that Gemini CLI has stored: found, read, summarised, watched."""
