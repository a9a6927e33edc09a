"""The fleet as admins see it: its figures, its nodes, its heat, and who waits for whom."""
