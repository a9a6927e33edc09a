"""What a change would do, shown before the merge, and its outcome afterwards."""
