"""What is known and decided, as values; imports only schemas and scheduler."""
