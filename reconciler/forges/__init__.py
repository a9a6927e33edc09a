"""The pull-request side of a repository: one port, and an adapter for each kind of forge."""
