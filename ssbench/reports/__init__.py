"""Reports: each a function from the numbers of a run to a text; :mod:`.products` names them all."""
