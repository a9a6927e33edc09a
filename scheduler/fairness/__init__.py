"""The order of waiting requests."""
