"""Pages for members of workspaces."""
