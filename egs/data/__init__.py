"""What answers hold, as frozen values."""
