"""Shell commands as the CLI reads them: their parts, and which of them are safe."""
