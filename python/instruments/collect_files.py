"""The instrument `collect_files`: takes files out of the work folder, believing nothing about them."""

import base64
import errno
import os
import stat
from typing import Any

from worker.instrument import Scene

from instruments.arguments import number_argument, texts_argument

# Neither a link to somewhere else, nor a pipe that would keep the worker waiting, nor a terminal.
_OPEN_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class Refused(Exception):
    """A file that is not taken; the message says why."""


def collect_files(scene: Scene, arguments: dict[str, Any]) -> None:
    """Read regular files of these `names`; report `files`, base64 by name, and `refused`, reasons by name.

    `max_file_bytes` and `max_total_bytes` bound them one by one and together, in the order of the names.

    Raises:
        TypeError: An argument is missing or of another type.
        ValueError: A limit is not above zero.
    """
    names = texts_argument(arguments, "names")
    max_file_bytes = int(number_argument(arguments, "max_file_bytes"))
    left = int(number_argument(arguments, "max_total_bytes"))
    files: dict[str, str] = {}
    refused: dict[str, str] = {}
    scene.report.update(files=files, refused=refused)
    for name in dict.fromkeys(names):
        try:
            data = _read(scene.work, name, max_file_bytes)
            if len(data) > left:
                raise Refused(f"it has {len(data)} bytes, and {left} are left for all files together")
        except Refused as reason:
            refused[name] = str(reason)
        else:
            left -= len(data)
            files[name] = base64.b64encode(data).decode("ascii")


def _read(folder: str, name: str, limit: int) -> bytes:
    if name in ("", ".", "..") or "/" in name or "\0" in name:
        raise Refused("it is not the name of a file in the work folder")
    try:
        descriptor = os.open(os.path.join(folder, name), _OPEN_FLAGS)
    except OSError as error:
        raise Refused(_reason(error)) from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise Refused("it is not a regular file")
        # One more than allowed: what a file says of its size may change while it is read.
        parts, wanted = [], limit + 1
        while wanted > 0 and (part := os.read(descriptor, wanted)):
            parts.append(part)
            wanted -= len(part)
    except OSError as error:
        raise Refused(_reason(error)) from error
    finally:
        os.close(descriptor)
    if wanted == 0:
        raise Refused(f"it has more than {limit} bytes")
    return b"".join(parts)


def _reason(error: OSError) -> str:
    if error.errno == errno.ENOENT:
        return "it is missing"
    if error.errno == errno.ELOOP:
        return "it is a symbolic link"
    return f"it can not be read: {os.strerror(error.errno or 0)}"
