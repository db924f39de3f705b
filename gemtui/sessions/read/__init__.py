"""One session file: its records, replayed to a conversation and converted to a transcript."""
