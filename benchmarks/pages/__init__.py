"""What open pages cost: streams of viewers, and the calendar in a real browser."""
