"""Differences between two plans, and their causes."""
