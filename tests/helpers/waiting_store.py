"""A small store in a process of its own that makes its clients wait, by what Linux itself does.

    python waiting_store.py [--nagle] [--drop-syn SHARE] [--lose SHARE] [--close]
                            [--backlog N] [--pause SECONDS] [--names]

It prints its port. ``--nagle`` sends headers and body apart without TCP_NODELAY. ``--drop-syn`` and
``--lose`` attach a filter to the listening or the accepted sockets, by which the kernel drops a share of the
SYNs or of other segments that arrive; the client's kernel sends them again. With ``--pause`` it accepts
nothing for so many seconds every now and then, so that a queue of ``--backlog`` overflows. With ``--names``
it is two name servers as well, of which the first does not answer: 127.0.0.2 and 127.0.0.3, which every name
is told to be 127.0.0.1 by.
"""

from __future__ import annotations

import argparse
import ctypes
import hashlib
import socket
import struct
import threading
import time

_ATTACH, _DETACH = 26, 27
#: Classic BPF: load a byte, a random number; jumps; return.
_LOAD_BYTE, _LOAD_WORD, _IF_GREATER, _IF_BITS, _RETURN = 0x30, 0x20, 0x25, 0x45, 0x06
_RANDOM, _FLAGS, _ACK, _PSH = 0xFFFFF000 + 56, 13, 0x10, 0x08
#: Seconds from one pause to the next: SYNs that are sent again after 1 s do not meet each.
_EVERY = 0.6
OBJECTS: dict[str, bytes] = {}


def attach(sock: socket.socket, share: float, *, syn: bool) -> None:
    """Have the kernel drop a share of the SYNs, or of the segments with data, that reach a socket."""
    least = int((1 - share) * 0xFFFFFFFF)
    # All but the chosen segments jump to the last line, which keeps them.
    chosen = (_IF_BITS, 3, 0, _ACK) if syn else (_IF_BITS, 0, 3, _PSH)
    program = [
        (_LOAD_BYTE, 0, 0, _FLAGS),
        chosen,
        (_LOAD_WORD, 0, 0, _RANDOM),
        (_IF_GREATER, 0, 1, least),
        (_RETURN, 0, 0, 0),
        (_RETURN, 0, 0, 0xFFFFFFFF),
    ]
    code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in program))
    filter_ = struct.pack("HL", len(program), ctypes.addressof(code))
    sock.setsockopt(socket.SOL_SOCKET, _ATTACH, filter_)


def serve(connection: socket.socket, options: argparse.Namespace) -> None:
    connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, not options.nagle)
    stream = connection.makefile("rb")
    with connection, stream:
        while head := stream.readline():
            method, path, _ = head.decode().split(" ", 2)
            length = 0
            while (line := stream.readline().strip()) != b"":
                name, _, value = line.decode("latin1").partition(":")
                length = int(value) if name.lower() == "content-length" else length
            body = stream.read(length)
            headers, content = answer(method, path, body)
            headers += "Connection: close\r\n" if options.close else ""
            whole = f"HTTP/1.1 {headers}X-Trans-Id: tx{time.time_ns():021x}\r\n\r\n".encode()
            if options.nagle and content:
                connection.sendall(whole)
                connection.sendall(content)
            else:
                connection.sendall(whole + content)
            if options.close:
                return


def serve_names() -> None:
    """Take queries at one address, and answer those at another one."""
    silent, other = (socket.socket(type=socket.SOCK_DGRAM) for _ in range(2))
    with silent, other:
        silent.bind(("127.0.0.2", 53))
        other.bind(("127.0.0.3", 53))
        while True:
            query, client = other.recvfrom(512)
            end = query.index(0, 12) + 5  # of the name, the type and the class
            found = query[end - 4 : end - 2] == b"\0\1"  # IPv6 has no address
            head = query[:2] + struct.pack("!5H", 0x8180, 1, found, 0, 0)
            record = struct.pack("!3HIH4B", 0xC00C, 1, 1, 0, 4, 127, 0, 0, 1)
            other.sendto(head + query[12:end] + record * found, client)


def answer(method: str, path: str, body: bytes) -> tuple[str, bytes]:
    """Return status and headers, and the body."""
    is_object = path.partition("?")[0].count("/") > 3
    if method == "PUT":
        if is_object:
            OBJECTS[path] = body
        etag = hashlib.md5(body).hexdigest()
        return f"201 Created\r\nContent-Length: 0\r\nETag: {etag}\r\n", b""
    if method == "DELETE":
        OBJECTS.pop(path, None)
        return "204 No Content\r\n", b""
    if not is_object:
        listing = "200 OK\r\nContent-Length: 2\r\nContent-Type: application/json\r\n"
        return listing, b"" if method == "HEAD" else b"[]"
    content = OBJECTS.get(path)
    if content is None:
        return "404 Not Found\r\nContent-Length: 0\r\n", b""
    etag = hashlib.md5(content).hexdigest()
    head = f"200 OK\r\nContent-Length: {len(content)}\r\nETag: {etag}\r\n"
    return head, b"" if method == "HEAD" else content


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--nagle", action="store_true")
    parser.add_argument("--close", action="store_true")
    parser.add_argument("--drop-syn", type=float, default=0.0)
    parser.add_argument("--lose", type=float, default=0.0)
    parser.add_argument("--backlog", type=int, default=1024)
    parser.add_argument("--pause", type=float, default=0.0)
    parser.add_argument("--names", action="store_true")
    options = parser.parse_args()
    if options.names:
        threading.Thread(target=serve_names, daemon=True).start()
    listener = socket.socket()
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.bind(("127.0.0.1", 0))
    listener.listen(options.backlog)
    if options.drop_syn:
        attach(listener, options.drop_syn, syn=True)
    print(listener.getsockname()[1], flush=True)
    pause = time.monotonic() + _EVERY
    while True:
        if options.pause and time.monotonic() > pause:
            time.sleep(options.pause)
            pause = time.monotonic() + _EVERY
        connection, _ = listener.accept()
        if options.drop_syn:
            connection.setsockopt(socket.SOL_SOCKET, _DETACH, 0)
        if options.lose:
            attach(connection, options.lose, syn=False)
        threading.Thread(target=serve, args=(connection, options), daemon=True).start()


if __name__ == "__main__":
    main()
