"""Whether a rule is about a call: its patterns, and the text they are matched against."""
