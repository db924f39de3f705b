"""What the real CLI decides on tool calls under policies, observed anew."""
