"""Who comes first."""
