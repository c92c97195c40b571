"""The numbers of a run, counted from its results. They know no file and no screen.

:class:`Collector` takes blocks of results in; :func:`make_statistics` makes of it what reports show,
:func:`summarize` does both.
"""
