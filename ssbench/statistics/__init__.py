"""The numbers of a run, counted from its results. They know no file and no screen.

:class:`~.collector.Collector` receives blocks of results; :func:`~.summary.make_statistics` makes of it what
reports show, :func:`~.summary.summarize` does both.
"""
