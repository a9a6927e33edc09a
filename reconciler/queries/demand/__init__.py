"""What the requests of a slice say about the nodes that it will need."""
