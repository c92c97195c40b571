"""What ssbench expects of a store (:mod:`.contract`), and the stores that there are (:mod:`.stores`)."""
