"""Which pods may run where: policies or a webhook."""
