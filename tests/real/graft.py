"""Shows a folder of this machine inside a container that is already running, at the same path, read-only.

As a program: `graft.py INIT FOLDER…`, with the number of the container's init on
this machine, as root. The mount is made in the container's own namespace and ends with it, so
there is nothing to undo. Needs Linux 5.12 (see open_tree(2), move_mount(2), mount_setattr(2)).
"""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path

# The same on every architecture.
OPEN_TREE, MOVE_MOUNT, MOUNT_SETATTR = 428, 429, 442

AT_FDCWD = -100
AT_EMPTY_PATH = 0x1000
AT_RECURSIVE = 0x8000
OPEN_TREE_CLONE = 1
MOVE_MOUNT_F_EMPTY_PATH = 4
MOUNT_ATTR_RDONLY = 1
MS_PRIVATE = 1 << 18
CLONE_NEWNS = 0x00020000

LIBC = ctypes.CDLL(None, use_errno=True)


class MountAttributes(ctypes.Structure):
    """struct mount_attr."""

    _fields_ = [(name, ctypes.c_uint64) for name in ("set", "clear", "propagation", "user_namespace")]


def graft(init: int, folders: list[str]) -> None:
    """Shows the folders in the container of that init. This process is in the container afterwards."""
    trees = [_copy(folder) for folder in folders]
    _enter(init)
    for folder, tree in zip(folders, trees, strict=True):
        _make_reachable(Path(folder))
        _call(MOVE_MOUNT, tree, b"", AT_FDCWD, os.fsencode(folder), MOVE_MOUNT_F_EMPTY_PATH)


def _copy(folder: str) -> int:
    """A read-only copy of the mount tree at a folder, which is nowhere yet; its file descriptor."""
    tree = _call(OPEN_TREE, AT_FDCWD, os.fsencode(folder), OPEN_TREE_CLONE | AT_RECURSIVE | os.O_CLOEXEC)
    attributes = MountAttributes(set=MOUNT_ATTR_RDONLY, propagation=MS_PRIVATE)
    flags = AT_EMPTY_PATH | AT_RECURSIVE
    _call(MOUNT_SETATTR, tree, b"", flags, ctypes.byref(attributes), ctypes.c_size_t(ctypes.sizeof(attributes)))
    return tree


def _enter(init: int) -> None:
    """Goes into the container's mount namespace and into its root."""
    root = os.open(f"/proc/{init}/root", os.O_RDONLY | os.O_DIRECTORY)
    namespace = os.open(f"/proc/{init}/ns/mnt", os.O_RDONLY)
    if LIBC.setns(namespace, CLONE_NEWNS) == -1:
        raise OSError(ctypes.get_errno(), "setns")
    os.fchdir(root)
    os.chroot(".")


def _make_reachable(folder: Path) -> None:
    """Creates the folder, and lets everybody pass through those above it: services are not root."""
    folder.mkdir(parents=True, exist_ok=True)
    for above in folder.parents:
        above.chmod(above.stat().st_mode | 0o111)


def _call(number: int, *arguments: object) -> int:
    """A system call that libc may not know yet. Raises OSError."""
    result = int(LIBC.syscall(number, *arguments))
    if result == -1:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


if __name__ == "__main__":
    graft(int(sys.argv[1]), sys.argv[2:])
