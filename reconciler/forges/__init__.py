"""The pull-request side of a repository: one port, and a driver per kind of forge."""
