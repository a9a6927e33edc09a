"""The vendor's names for requests, workspaces, templates, policies and keys."""
