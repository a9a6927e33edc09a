"""The whole system on one machine: the composition root of `egs demo`."""
