"""Past states as views, and what differs between two states."""
