"""The cluster beside the run, and after it: what its servers say of themselves, and which node was slow.

Beside a run recon and statsd are asked, by a child process (:mod:`._watch`), so that this cannot delay the
master's loop; :mod:`.observer` is the master's end of it. :mod:`.recon` asks the servers and makes records of
what Swift's recon middleware and ``/info`` answer, :mod:`.statsd` of the lines that Swift sends to a statsd
server. :mod:`.judgments` says what is remarkable about them. :mod:`ssbench.results.cluster_observation` has
the records that a stat file keeps.

After a run its results are joined with Swift's logs (:mod:`.join`), to find out which node was slow
(:mod:`.findings`). :mod:`.ring` has the servers of ring files.
"""
