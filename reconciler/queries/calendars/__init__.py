"""The calendar: nodes along time, with what has each of them when."""
