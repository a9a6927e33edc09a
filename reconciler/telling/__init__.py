"""Messages to people about events: what goes where and when; the only user of apprise."""
