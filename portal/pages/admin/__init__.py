"""Pages for admins."""
