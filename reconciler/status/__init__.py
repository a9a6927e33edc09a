"""What is written to the status branch, and read back from it."""
