"""Git as the only database: read a commit, write a branch, compare-and-swap."""
