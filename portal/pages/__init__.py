"""Web pages: the same answers as the API, rendered on the server."""
