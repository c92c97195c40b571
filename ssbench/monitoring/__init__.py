"""A run for others to watch (``--metrics``): a page in a browser, numbers for Prometheus, OTLP and StatsD.

The page is that of ``--html``, made by the same code from the same results: a process of its own
(:mod:`.page_server`) reads the stat file while it is written, counts what is new, and sends browsers the
parts that have changed. The master sends it the file's name, and what only the master knows; it waits neither
for this process nor for a browser. ``doc/reports.rst`` and ``doc/metrics.rst`` say how to use them.
"""
