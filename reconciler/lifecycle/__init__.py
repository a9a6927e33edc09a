"""A request's life, from its file to clean nodes."""
