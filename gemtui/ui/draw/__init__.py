"""Turn text into lines for the screen: styles, wrapping, tables, code, Markdown; no widgets."""
