"""Commands about changes that are not made yet."""
