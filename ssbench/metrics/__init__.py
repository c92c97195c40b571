"""What monitoring systems learn of a run while it is under way; ``doc/metrics.rst``.

Results are counted once (``counting``); ``families`` is the table of metrics that are made of these sums, and
``prometheus`` and ``otlp`` write them, each in its form. statsd gets results as they are.
"""
