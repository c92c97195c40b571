"""Compares runs, and says no more than was measured (``doc/comparing.rst``).

:func:`figures_of` reduces the statistics of a run to what is compared; :func:`compare` takes two groups of
runs, :func:`compare_sides` the two sides of one run. :mod:`ssbench.comparison.comparison_report` makes a
document of what was found, :mod:`ssbench.comparison.comparison_report` CSV and JSON.
"""
