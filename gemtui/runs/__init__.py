"""The runs that gemtui started: their records, how they ended, and the sessions they resume."""
