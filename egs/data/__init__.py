"""The content of answers, as frozen values."""
