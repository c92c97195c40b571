"""How much load a store bears: what to run next and what came of it, without running anything itself.

``steps`` has what is known of one run, ``sweep`` goes through values until more brings nothing, ``search``
looks for the highest one at which an ``objective`` holds.
"""
