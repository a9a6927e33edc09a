"""Who the caller is, and what they may do and see."""
