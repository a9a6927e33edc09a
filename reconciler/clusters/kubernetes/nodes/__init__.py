"""Nodes and their pods: read, marked, taken back."""
