"""Compares runs, and says no more than was measured (``doc/comparing.rst``).

:mod:`.run_figures` reduces the statistics of a run to what is compared; :mod:`.compare` takes two groups of
runs, :mod:`.sides` the two sides of one run. :mod:`.comparison_report` makes a document, CSV and JSON of what
was found.
"""
