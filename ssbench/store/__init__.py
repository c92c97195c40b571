"""What ssbench expects of a store; :mod:`ssbench.swift` is the first one, :mod:`ssbench.stores` chooses."""
