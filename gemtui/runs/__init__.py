"""The runs that gemtui starts: their records, their endings and the sessions they resume."""
