"""What the chart gives to Prometheus and Grafana: rules about GPUs, and dashboards."""
