"""Whose word counts for a request."""
