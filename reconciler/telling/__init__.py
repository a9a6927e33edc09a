"""Messages to people about events: what goes where and when, and the one door to apprise."""
