"""Swift's container sharder, once: ``python sharder.py ETC ACCOUNT CONTAINER THRESHOLD``.

``ETC`` is the folder of the configuration of an embedded Swift. A container of more objects than the
threshold is sharded if a reseller admin has marked it for that (X-Container-Sharding), as in a cluster with
``auto_shard``.
"""

from __future__ import annotations

import configparser
import sys
from pathlib import Path

from swift.common import constraints, storage_policy, utils

ETC, ACCOUNT, CONTAINER, THRESHOLD = sys.argv[1:]

utils.monkey_patch()
# Swift reads these from /etc/swift when it is imported, whatever swift_dir says.
utils.set_swift_dir(ETC)
constraints.reload_constraints()
storage_policy.reload_storage_policies()

from swift.container.sharder import ContainerSharder  # noqa: E402 - it reads them too

_INTERNAL = f"""
[DEFAULT]
swift_dir = {ETC}
[pipeline:main]
pipeline = catch_errors proxy-server
[app:proxy-server]
use = egg:swift#proxy
account_autocreate = true
[filter:catch_errors]
use = egg:swift#catch_errors
"""


def main() -> None:
    """Shard the container, and print how many shards its listing consists of."""
    server = configparser.RawConfigParser(default_section="no section has this name")
    server.read(Path(ETC) / "container.conf")
    internal = Path(ETC) / "internal-client.conf"
    internal.write_text(_INTERNAL)
    sharder = ContainerSharder(
        {
            **server["DEFAULT"],
            "auto_shard": "true",
            "shard_container_threshold": THRESHOLD,
            "rows_per_shard": str(int(THRESHOLD) // 2),
            "shrink_threshold": "1",
            "minimum_shard_size": "1",
            "cleave_batch_size": "100",
            "internal_client_conf_path": str(internal),
            "recon_cache_path": str(Path(ETC)),
        }
    )
    partition = sharder.ring.get_part(ACCOUNT, CONTAINER)
    sharder.run_once(partitions=str(partition))
    print(sharder.stats["sharding"]["cleaved"]["success"])


if __name__ == "__main__":
    main()
