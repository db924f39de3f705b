"""Policy files: from TOML to rules, and back to a text that keeps its layout."""
