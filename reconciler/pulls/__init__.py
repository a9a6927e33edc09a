"""What a change would do, told before it is merged, and what became of it afterwards."""
