"""The backend of the commands for a server. `asking` makes all its calls."""
