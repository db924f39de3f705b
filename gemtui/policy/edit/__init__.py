"""Policy files that a person edits: documents, and the places where they are kept."""
