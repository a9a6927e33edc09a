"""The whole system on one machine, for `egs demo`."""
