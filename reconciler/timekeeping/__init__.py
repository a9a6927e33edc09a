"""The time, and whether our clock can be trusted."""
