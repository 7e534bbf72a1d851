"""The store's directory: private to one user, and refused where it is not."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from stagewire import KVError
from stagewire_shm.faults import explain
from stagewire_shm.options import ShmOptions


def locate(options: ShmOptions) -> Path:
    """Return where the store of this user is, whether or not there is one."""
    return options.directory / f"stagewire-{os.geteuid()}-{options.name}"


def prepare(place: Path) -> None:
    """Make the directory, or check the one that is there. Raises `KVError`."""
    try:
        place.mkdir(mode=0o700, exist_ok=True)
    except FileExistsError:
        pass  # a file or a dangling link; the check below says which
    except OSError as error:
        raise explain(place, error) from error
    try:
        found = place.lstat()
    except OSError as error:
        raise explain(place, error) from error
    if not stat.S_ISDIR(found.st_mode):
        raise KVError(f"shared memory {place} is not a directory: remove it, or set another name")
    if found.st_uid != os.geteuid():
        raise KVError(f"shared memory {place} belongs to user {found.st_uid}, not to you: set another name")
    if found.st_mode & 0o077:
        mode = stat.S_IMODE(found.st_mode)
        raise KVError(f"shared memory {place} is open to other users (mode {mode:o}): chmod 700, or set another name")
