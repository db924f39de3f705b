"""A transcript on the screen: messages and cards as lines, a view that scrolls them."""
