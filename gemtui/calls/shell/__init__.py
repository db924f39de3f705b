"""Shell commands as the CLI parses them, and which of them are safe."""
