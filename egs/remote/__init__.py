"""The backend of the commands for a server. `asking` is its one door to the HTTP API."""
