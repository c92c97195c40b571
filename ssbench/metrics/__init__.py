"""What is told to monitoring systems while a run goes on: Prometheus and statsd. ``doc/metrics.rst``."""
