"""What every path of the API has in common."""
