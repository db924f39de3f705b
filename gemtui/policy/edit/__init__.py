"""Policy files that a person edits: documents, and where they are stored."""
