"""Commands that draw time: the calendar."""
