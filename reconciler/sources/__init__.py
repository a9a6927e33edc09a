"""Where a command reads from and writes to."""
