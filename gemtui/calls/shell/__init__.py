"""Shell commands as the CLI parses them, and those that it considers safe."""
