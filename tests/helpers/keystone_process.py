"""``python keystone_process.py FOLDER PASSWORD``: serve Keystone until standard input ends.

Makes the database and the user ``admin``, and writes its URL to standard output when it is ready.
"""

from __future__ import annotations

import multiprocessing
import os
import socket
import sys
import threading
from pathlib import Path

from cryptography.fernet import Fernet
from keystone import server
from keystone.cmd.bootstrap import Bootstrapper
from keystone.common.sql import upgrades
from keystone.server.wsgi import initialize_public_application
from werkzeug.serving import WSGIRequestHandler, make_server


class Handler(WSGIRequestHandler):  # type: ignore[misc]  # only where Keystone is installed
    protocol_version = "HTTP/1.1"


def write_keys(folder: Path) -> None:
    for name in ("keys", "credential-keys"):
        keys = folder / name
        keys.mkdir(mode=0o700)
        for number in (0, 1):
            (keys / str(number)).write_bytes(Fernet.generate_key())
            (keys / str(number)).chmod(0o600)


def make_database(folder: Path, password: str, url: str) -> None:
    server.configure(config_files=[str(folder / "keystone.conf")])
    upgrades.offline_sync_database_to_version()
    first = Bootstrapper()
    first.admin_password = password
    first.admin_username = first.project_name = first.admin_role_name = "admin"
    first.service_name = "keystone"
    first.immutable_roles = False
    first.region_id = "RegionOne"
    first.public_url = first.internal_url = first.admin_url = f"{url}/v3"
    first.bootstrap()


def main(folder: Path, password: str) -> None:
    # Keystone parses the arguments of the program that it is in.
    sys.argv = ["keystone"]
    os.environ["OS_KEYSTONE_CONFIG_FILES"] = str(folder / "keystone.conf")
    write_keys(folder)
    listener = socket.create_server(("127.0.0.1", 0))
    url = f"http://127.0.0.1:{listener.getsockname()[1]}"
    # A process can be configured once, to make the database or to serve.
    maker = multiprocessing.get_context("fork").Process(target=make_database, args=(folder, password, url))
    maker.start()
    maker.join()
    threading.Thread(target=lambda: (sys.stdin.read(), os._exit(0)), daemon=True).start()
    application = initialize_public_application()
    listening = make_server(
        "127.0.0.1", 0, application, threaded=True, request_handler=Handler, fd=listener.fileno()
    )
    print(url, flush=True)
    listening.serve_forever()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
