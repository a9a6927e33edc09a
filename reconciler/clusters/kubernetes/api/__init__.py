"""An API server: the connection, what it can do, and what it holds."""
