"""The kinds that people write."""
