"""The zygote's line to the service: control frames on stdin and stdout, a log on stderr."""

import json
import os
import traceback
from collections.abc import Callable
from typing import Any


def say(kind: str, **fields: Any) -> None:
    """Write one control frame to the service."""
    data = json.dumps({"type": kind, **fields}).encode() + b"\n"
    while data:
        try:
            data = data[os.write(1, data) :]
        except BrokenPipeError:
            # The service is gone; the end of stdin says so too, and ends the zygote.
            return


def read_line() -> bytes:
    """The first line of stdin, and not a byte more.

    Raises:
        SystemExit: The service left before it configured the zygote.
    """
    line = b""
    while not line.endswith(b"\n"):
        byte = os.read(0, 1)
        if not byte:
            raise SystemExit("the service left before it configured the zygote")
        line += byte
    return line


def guarded(work: Callable[[], None]) -> None:
    """Do one thing for one episode; its failure must not reach the others."""
    try:
        work()
    except Exception:
        log_exception()


def log_exception() -> None:
    """Write the exception that is being handled to stderr, whose lines the service logs."""
    os.write(2, traceback.format_exc().encode())
