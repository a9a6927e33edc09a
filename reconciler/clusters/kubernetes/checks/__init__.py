"""Checks of real nodes, as Jobs."""
