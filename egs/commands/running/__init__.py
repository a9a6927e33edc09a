"""Commands about what runs: GPUs, alerts, `egs top`, `egs diagnose`."""
