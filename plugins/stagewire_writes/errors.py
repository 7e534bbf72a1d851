"""The named errors of write sessions. Each has a code, by which it travels from an agent to its caller."""

from __future__ import annotations

import errno
from typing import ClassVar

from stagewire import SessionError


class WriteError(SessionError):
    """Base of the errors of write sessions; ``code`` is what travels."""

    code: ClassVar[str] = "failed"


class PathRefused(WriteError):
    """The path is empty, leaves the export, goes through a symbolic link, or is reserved."""

    code = "path-refused"


class PathHeld(WriteError):
    """Another session or put holds the path until it ends (WS-12)."""

    code = "path-held"


class NotFound(WriteError):
    """There is nothing at this path."""

    code = "not-found"


class IsDirectory(WriteError):
    """A directory is where a file should be."""

    code = "is-directory"


class NotDirectory(WriteError):
    """A file is where a directory should be."""

    code = "not-directory"


class NotEmpty(WriteError):
    """The directory holds something."""

    code = "not-empty"


class AlreadyThere(WriteError):
    """Something is at this path already."""

    code = "already-there"


class AccessDenied(WriteError):
    """The export's ``allow``, or the file system, does not permit it."""

    code = "access-denied"


class DiskFull(WriteError):
    """The file system, or a quota, is full."""

    code = "disk-full"


class FileTooLarge(WriteError):
    """The file is larger than the file system, or the process's limit, allows."""

    code = "file-too-large"


class StorageFault(WriteError):
    """The file system failed in a way that has no name here."""

    code = "storage-fault"


class PayloadTooLarge(WriteError):
    """A small put has to be smaller than its limit (WS-13)."""

    code = "payload-too-large"


class OffsetRefused(WriteError):
    """A payload does not follow the one before it (WS-4)."""

    code = "offset-refused"


class FrameRefused(WriteError):
    """Number, lengths or bytes of frames do not agree with what was announced."""

    code = "frame-refused"


class ReferenceRefused(WriteError):
    """A reference does not belong to its session: source, generation, nonce or key is not the expected one (WS-8)."""

    code = "reference-refused"


class PayloadMissing(WriteError):
    """The payload that a reference names could not be fetched in time."""

    code = "payload-missing"


class ChecksumMismatch(WriteError):
    """Bytes changed on their way (WS-18)."""

    code = "checksum-mismatch"


class SessionUnknown(WriteError):
    """The agent has no such session: it ended, was reaped, or belongs to an agent that was restarted (WS-10)."""

    code = "session-unknown"


class SessionEnded(WriteError):
    """The session was aborted, finalized or closed; it takes nothing more."""

    code = "session-ended"


class Incomplete(WriteError):
    """Frames are missing at a barrier (WS-5)."""

    code = "incomplete"


class FileChanged(WriteError):
    """The file is no longer the version that was asked for."""

    code = "file-changed"


class AgentStopping(WriteError):
    """The agent is shutting down and admits nothing more (WS-15)."""

    code = "agent-stopping"


class AgentReplaced(WriteError):
    """Another process serves the node by now: the agent was restarted (WS-10)."""

    code = "agent-replaced"


class AgentLost(WriteError):
    """The agent does not answer; what it had not acknowledged by finalize is not written (WS-19)."""

    code = "agent-lost"


class NoAgent(WriteError):
    """No agent serves the export (WS-14)."""

    code = "no-agent"


def _codes(base: type[WriteError]) -> dict[str, type[WriteError]]:
    return {base.code: base} | {each.code: each for each in base.__subclasses__()}


CODES = _codes(WriteError)
"""The errors by their codes."""

_ERRNO: dict[int, tuple[type[WriteError], str]] = {
    errno.ENOENT: (NotFound, "there is no such file or directory"),
    errno.EISDIR: (IsDirectory, "it is a directory; name a file"),
    errno.ENOTDIR: (NotDirectory, "a part of the path is not a directory"),
    errno.ENOTEMPTY: (NotEmpty, "the directory is not empty"),
    errno.EEXIST: (AlreadyThere, "it is there already"),
    errno.EACCES: (AccessDenied, "the agent's user has no permission; change the mode or the owner on its host"),
    errno.EPERM: (AccessDenied, "the agent's user has no permission; change the mode or the owner on its host"),
    errno.EROFS: (AccessDenied, "the file system is read-only"),
    errno.ENOSPC: (DiskFull, "the file system is full; free some space on the agent's host"),
    errno.EDQUOT: (DiskFull, "the quota is used up; free some space on the agent's host"),
    errno.EFBIG: (FileTooLarge, "it grows larger than a file may be there"),
    errno.ELOOP: (PathRefused, "a part of the path is a symbolic link, which is not followed"),
    errno.EXDEV: (PathRefused, "it is on another file system than the export's root; export that one by itself"),
    errno.ENAMETOOLONG: (PathRefused, "a name in it is too long for the file system"),
    errno.EINVAL: (PathRefused, "the file system does not take this name"),
}


def from_os(error: OSError, path: str) -> WriteError:
    """Return the named error of a failed system call on a path of an export."""
    kind, text = _ERRNO.get(error.errno or 0, (StorageFault, str(error.strerror or error)))
    return kind(f"{path!r}: {text}")


def from_wire(code: str, text: str) -> WriteError:
    """Return the error that travelled."""
    return CODES.get(code, WriteError)(text)
