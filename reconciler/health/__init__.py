"""The health of nodes."""
