"""A run, from its options to its outcome.

``with Bench(BenchOptions(...)) as bench: outcome = bench.run(scenario, RunOptions(...))`` carries out any
number of runs with the same workers, token and local Swift; ``doc/api.rst`` has an example.
"""
