"""The vendor's words for requests, workspaces, templates, policies and keys."""
