"""The cluster beside the run: what its servers say of themselves before, during and after a benchmark.

:mod:`.observation` has the records that a stat file keeps; :mod:`.recon` makes them of what Swift's recon
middleware and ``/info`` answer, :mod:`.statsd` of the lines that Swift sends to a statsd server.
:mod:`.judgments` says what is remarkable about them. :mod:`.ring` takes the servers from ring files.

All of the work is done by a child process, :mod:`._watch`, so that it cannot hold up the master's loop;
:mod:`.observer` is the master's end of it, :mod:`.sampler` asks the servers.
"""
