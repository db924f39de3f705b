"""Policy files the user edits: documents, and where they are stored."""
