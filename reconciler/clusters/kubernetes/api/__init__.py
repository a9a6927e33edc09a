"""An API server: connection, features and objects."""
