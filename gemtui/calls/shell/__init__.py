"""Shell commands as the CLI parses them, and those it considers safe."""
