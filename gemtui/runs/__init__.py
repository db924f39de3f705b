"""The runs that gemtui started: their records, endings and resumed sessions."""
