"""The model of a conversation, shared by stored sessions and live runs."""
