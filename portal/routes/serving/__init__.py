"""Paths of served models."""
