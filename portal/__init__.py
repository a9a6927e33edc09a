"""The HTTP API: another door to the repository. Every read is of the status branch, every write a commit."""
