"""What differs between two plans, and why."""
