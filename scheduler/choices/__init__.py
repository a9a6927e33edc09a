"""Which pools, which nodes, and who gives way."""
