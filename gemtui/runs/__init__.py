"""The runs that gemtui starts: their records, endings and resumed sessions."""
