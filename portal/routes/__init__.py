"""The paths below /api/v1, one module for each kind of thing; each has a `router`."""
