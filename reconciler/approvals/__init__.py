"""Whose approval of a request counts."""
