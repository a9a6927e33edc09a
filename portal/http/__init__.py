"""What all paths of the API share."""
