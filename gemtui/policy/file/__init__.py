"""Policy files: convert TOML to rules, and rules to TOML, keeping the layout."""
