"""Read models: one commit, and what is derived from it."""
