"""Free time of pools and slices."""
