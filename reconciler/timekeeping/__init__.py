"""Which time it is, and whether our clock can be believed."""
