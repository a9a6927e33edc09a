"""Which request gets which nodes, when, and why. Pure: no clock, no files, no network."""
