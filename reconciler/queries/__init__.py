"""Read models, for the command line and the API."""
