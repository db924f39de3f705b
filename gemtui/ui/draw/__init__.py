"""Text as lines of the screen: colours, wrapping, tables, code, Markdown; without widgets."""
