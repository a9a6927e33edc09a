"""The work behind single commands."""
