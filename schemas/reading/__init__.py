"""From a file's bytes to values, and back."""
