"""Policy files: from TOML to rules, and back to TOML that keeps its layout."""
