"""One decision a cycle: facts, promises, slips and starts."""
