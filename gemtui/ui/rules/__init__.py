"""One rule and its document as the panes show and edit them."""
