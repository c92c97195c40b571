"""Takes from the run of the tests what a user does not have: capabilities, and the user root.

What a kernel lets root do hides faults that every user meets. Tests that need privileges are marked
``privileged``; ``tox -e privileged`` runs them.
"""

from __future__ import annotations

import ctypes
import os
import struct
from contextlib import suppress
from pathlib import Path

#: Set to ``keep``, this leaves the run as it is: for marked tests, and for recipes that root carries out.
KEEP_VARIABLE = "SSBENCH_TEST_PRIVILEGES"

#: Who the run is inside its user namespace; outside of it the files that it writes are root's.
_USER = 1000

_CLONE_NEWUSER = 0x10000000
_PR_CAPBSET_READ, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS = 23, 24, 38
_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL = 47, 4
_CAPABILITY_VERSION_3 = 0x20080522
_CAPABILITIES = 64


def drop_privileges() -> str:
    """Give up all capabilities for good, and the user where it is root; say what the run is now.

    Call it while the process has one thread. Where the kernel allows it, root becomes a user of a namespace
    of its own, because another user could not read a Python in root's home folder. Elsewhere root remains,
    without a capability. Raises OSError if a capability is left.
    """
    if os.environ.get(KEEP_VARIABLE) == "keep":
        return f"kept ({KEEP_VARIABLE}=keep), user {os.geteuid()}"
    if is_privileged():
        was_root = os.geteuid() == 0
        if was_root:
            with suppress(OSError):
                _enter_user_namespace()
        _drop_capabilities()
        if was_root:
            return f"user {os.geteuid()} without capabilities (begun as root)"
    return f"user {os.geteuid()} without capabilities"


def is_privileged() -> bool:
    """Return whether this process has a capability, or can get one by starting a program."""
    fields = dict(line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines())
    held = any(int(fields[name], 16) for name in ("CapInh", "CapPrm", "CapEff", "CapAmb"))
    return held or (os.geteuid() == 0 and int(fields["CapBnd"], 16) != 0)


def _enter_user_namespace() -> None:
    user, group = os.geteuid(), os.getegid()
    _call("unshare", _CLONE_NEWUSER)
    Path("/proc/self/setgroups").write_text("deny")
    Path("/proc/self/uid_map").write_text(f"{_USER} {user} 1")
    Path("/proc/self/gid_map").write_text(f"{_USER} {group} 1")


def _drop_capabilities() -> None:
    for capability in range(_CAPABILITIES):
        with suppress(OSError):  # a kernel has fewer than 64
            if _call("prctl", _PR_CAPBSET_READ, capability, 0, 0, 0) == 1:
                _call("prctl", _PR_CAPBSET_DROP, capability, 0, 0, 0)
    _call("prctl", _PR_CAP_AMBIENT, _PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0)
    _call("prctl", _PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    _call("capset", struct.pack("Ii", _CAPABILITY_VERSION_3, 0), bytes(24))
    if is_privileged():
        raise OSError("the run of the tests still has a capability")


def _call(name: str, *arguments: int | bytes) -> int:
    """Call a function of the C library; raises OSError where it fails."""
    library = ctypes.CDLL(None, use_errno=True)
    wide = [ctypes.c_ulong(each) if isinstance(each, int) else each for each in arguments]
    result: int = getattr(library, name)(*wide)
    if result == -1:
        code = ctypes.get_errno()
        raise OSError(code, f"{name}: {os.strerror(code)}")
    return result
