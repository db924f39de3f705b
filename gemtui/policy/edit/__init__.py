"""Policy files that the user edits: documents, and where they are stored."""
