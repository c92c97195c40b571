"""A real OpenStack Swift on loopback, for people and tests without a cluster.

::

    with LocalSwift() as swift:
        print(swift.auth_url, swift.user, swift.key)

What runs is the released Swift of PyPI (``pip install '.[swift]'`` in a clone), one replica, in child
processes: a proxy server, a server of accounts and containers, and one or more object servers.
They need no root, no configuration outside their own folder and no other service, and they end
with the process that started them, however that ends.

:mod:`.cluster` starts and stops them, :mod:`.configuration` writes what they read,
:mod:`.processes` is one such process; :mod:`._serve`, :mod:`._cache` and :mod:`._log` run inside the
children: Swift brings eventlet, whose patching does not go with gevent's.
"""

from ssbench.local_swift.cluster import LocalSwift

__all__ = ["LocalSwift"]
