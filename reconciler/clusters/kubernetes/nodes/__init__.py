"""Nodes and their pods: read, mark, release."""
