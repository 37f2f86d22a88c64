"""Runs the text of a script in this process as `python train.py` would run the file."""

import builtins
import importlib.machinery
import os
import signal
import sys
import types
from typing import Any

from worker.failure import remember_source

SCRIPT_NAME = "train.py"
#: What a shell tells of a program that Ctrl-C ended.
_INTERRUPTED = 128 + signal.SIGINT
_exec, _compile = exec, compile


def run_as_script(code: str, folder: str) -> int:
    """Write the script to the folder, make a `__main__` of its own and run it; returns the exit status.

    An uncaught exception goes through `sys.excepthook`, with the frames of the script only.

    Raises:
        OSError: The script can't be written to the folder.
    """
    source = code.encode("utf-8", "surrogatepass")
    os.chdir(folder)
    with open(SCRIPT_NAME, "wb", opener=_no_follow) as file:
        file.write(source)
    # For tracebacks, also when the script goes to another folder.
    remember_source(SCRIPT_NAME, code)
    main = _fresh_main(folder)
    try:
        # Bytes, as in a file: a coding line counts, and what is no text is a syntax error.
        _exec(_compile(source, SCRIPT_NAME, "exec", dont_inherit=True), main)
    except BaseException as raised:
        # The first frame is this one.
        return _status_of(raised.with_traceback(raised.__traceback__.tb_next if raised.__traceback__ else None))
    return 0


def _no_follow(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o644)


def _fresh_main(folder: str) -> dict[str, Any]:
    main = types.ModuleType("__main__")
    main.__file__ = SCRIPT_NAME
    main.__loader__ = importlib.machinery.SourceFileLoader("__main__", SCRIPT_NAME)
    values = main.__dict__
    values.update(__builtins__=builtins, __cached__=None)
    sys.modules["__main__"] = main
    sys.argv[:] = [SCRIPT_NAME]
    # In the place of the working folder, which the script may change.
    sys.path[:] = [folder, *(path for path in sys.path if path not in ("", folder))]
    return values


def _status_of(raised: BaseException) -> int:
    if isinstance(raised, SystemExit):
        return _exit_status(raised)
    try:
        sys.excepthook(type(raised), raised, raised.__traceback__)
    except SystemExit as asked:
        return _exit_status(asked)
    except BaseException as failed:
        _write_error("Error in sys.excepthook:\n")
        sys.__excepthook__(type(failed), failed, failed.__traceback__ and failed.__traceback__.tb_next)
        _write_error("\nOriginal exception was:\n")
        sys.__excepthook__(type(raised), raised, raised.__traceback__)
    return _INTERRUPTED if isinstance(raised, KeyboardInterrupt) else 1


def _exit_status(raised: SystemExit) -> int:
    code = raised.code
    if code is None:
        return 0
    if isinstance(code, int):
        return code & 0xFF
    _write_error(f"{code}\n")
    return 1


def _write_error(text: str) -> None:
    stream = sys.stderr
    if stream is not None:
        stream.write(text)
