"""Pages of served models."""
