"""When a waiting request will likely start."""
