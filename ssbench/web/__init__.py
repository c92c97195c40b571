"""``--web``: a run as a page in a browser while it is running. ``doc/reports.rst``.

The page is that of ``--html``, made by the same code from the same results: a process of its own
(``__main__``) reads the stat file while it is written, counts what is new, and sends browsers the parts that
have changed. The master sends it the file's name, and what only the master knows; it waits neither for this
process nor for a browser.
"""
