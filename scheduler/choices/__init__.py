"""Which pools, which nodes, and which requests give way."""
