"""What is known and decided, as values; imports schemas and scheduler alone."""
