"""Changes on their way to the repository."""
