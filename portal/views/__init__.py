"""What answers are made of: one commit, and what is read off it."""
