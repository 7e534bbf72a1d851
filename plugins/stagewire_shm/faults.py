"""What the system and SQLite say, said as a person needs it: where, why, and what to do."""

from __future__ import annotations

import errno
import sqlite3
from pathlib import Path

from stagewire import KVError

_REMEDIES = {
    errno.ENOSPC: "its file system is full: enlarge it (docker run --shm-size, mount -o remount,size=…)",
    errno.EDQUOT: "the quota of its file system is used up: raise it",
    errno.EMFILE: "too many open files: raise the limit (ulimit -n), or release holders earlier",
    errno.ENFILE: "too many open files on this host",
    errno.ENOMEM: "no memory to map: release holders earlier, or raise vm.max_map_count",
    errno.ENOENT: "a file of it is gone: was it removed while in use? Stop what uses it and start again",
    errno.EACCES: "not permitted: use a directory of your own",
    errno.EROFS: "its file system is read-only: set the option directory",
}


def explain(place: Path, error: OSError | sqlite3.Error) -> KVError:
    """Make a `KVError` that names the store, the remedy and the cause."""
    if isinstance(error, sqlite3.Error):
        return _explain_index(place, error)
    remedy = _REMEDIES.get(error.errno or 0)
    cause = error.strerror or str(error)
    return KVError(f"shared memory {place}: {remedy} ({cause})" if remedy else f"shared memory {place}: {cause}")


def _explain_index(place: Path, error: sqlite3.Error) -> KVError:
    if isinstance(error, sqlite3.OperationalError) and "full" in str(error):
        return KVError(f"shared memory {place}: {_REMEDIES[errno.ENOSPC]} ({error})")
    return damaged(place, str(error))


def damaged(place: Path, what: str) -> KVError:
    """Make the error of a store whose files do not fit together."""
    return KVError(f"shared memory {place} is damaged ({what}): stop what uses it and remove the directory")
