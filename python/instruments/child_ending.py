"""Begin and end a forked child the way an interpreter of its own would begin and end."""

import atexit
import ctypes
import gc
import io
import logging
import math
import multiprocessing.process
import multiprocessing.util
import os
import resource
import signal
import sys
import threading
import traceback
import weakref
from collections.abc import Callable
from typing import Any

from instruments.held_handlers import SIGNALS, get_handler, set_handler

# What is used while agent code is around is bound by name: it may replace what the modules export.
_libc_flush = ctypes.CDLL(None).fflush
#: `traceback.print_exc`, whatever agent code made of it.
print_exception = traceback.print_exc
_collect, _freeze = gc.collect, gc.freeze
_run_atexit, _forget_atexit, _at_exit = atexit._run_exitfuncs, atexit._clear, atexit.register
_end_threads: Callable[[], None] = threading._shutdown  # type: ignore[attr-defined]
_DEFAULT = int(signal.SIG_DFL)
_START_HANDLERS = {
    int(signal.SIGINT): signal.default_int_handler,
    int(signal.SIGPIPE): int(signal.SIG_IGN),
    int(signal.SIGXFSZ): int(signal.SIG_IGN),
}
#: What `python` itself ends with when its last output could not be written.
_UNFLUSHED_STATUS = 120
# Between the kernel's warning and its kill.
_CPU_GRACE_S = 1


def begin_child(cpu_s: float | None, data_bytes: int | None, threads: int) -> None:
    """Give a child that was just forked its own session, input, signals, limits and list of things to do at its end.

    Args:
        cpu_s: CPU time after which the kernel ends it, rounded up to whole seconds; None for no such limit.
        data_bytes: Private writable memory it may map, the inherited included; None for no limit of its own.
        threads: How many the parent had at the fork.

    Raises:
        OSError: The kernel refused.
    """
    os.setsid()
    _take_signals()
    if cpu_s is not None:
        seconds = math.ceil(cpu_s)
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + _CPU_GRACE_S))
    if data_bytes is not None:
        resource.setrlimit(resource.RLIMIT_DATA, (data_bytes, data_bytes))
    null = os.open(os.devnull, os.O_RDONLY)
    os.dup2(null, 0)
    if null != 0:
        os.close(null)
    sys.stdin = io.TextIOWrapper(io.BufferedReader(io.FileIO(0, "rb", closefd=False)), encoding="utf-8")
    _forget_parent()
    torch = sys.modules.get("torch")
    if torch is not None and threads > 1:
        # The threads of OpenMP stayed behind, and it would wait for them for ever.
        torch.set_num_threads(1)


def end_child(status: int, inherited: dict[str, Any]) -> int:
    """Do what an ending interpreter does before its process ends; returns the exit status.

    Threads are joined, `atexit` callbacks run, output is flushed, and the
    variables of `__main__` are dropped, which closes files left open.

    Args:
        inherited: Variables of `__main__` at the beginning; what still has its value then belongs to the parent.
    """
    for part in (_end_threads, _run_atexit):
        _attempt(part)
    flushed = flush_output()
    _attempt(lambda: _empty_main(inherited))
    return status & 0xFF if flush_output() and flushed else _UNFLUSHED_STATUS


def flush_output() -> bool:
    """Empty the buffers of Python's and C's standard streams; False when a stream could not be written.

    Agent code may have put any object in the place of `sys.stdout`; one that
    raises loses what it holds, and no other.
    """
    flushed = True
    for stream in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__):
        try:
            if stream is not None and not stream.closed:
                stream.flush()
        except Exception:
            flushed = False
    _libc_flush(None)
    return flushed


def _forget_parent() -> None:
    """Drop what the parent meant to do at its own end: the child would do it to the parent's files and processes."""
    # What the parent left to the collector stays the parent's to finalize.
    _freeze()
    _forget_atexit()
    weakref.finalize._registry.clear()  # type: ignore[attr-defined]
    weakref.finalize._registered_with_atexit = False  # type: ignore[attr-defined]
    multiprocessing.util._finalizer_registry.clear()  # type: ignore[attr-defined]
    multiprocessing.util._run_after_forkers()  # type: ignore[attr-defined]
    multiprocessing.process._children = set()  # type: ignore[attr-defined]
    # In the order of their imports, since the last one registered runs first.
    _at_exit(logging.shutdown)
    _at_exit(multiprocessing.util._exit_function)  # type: ignore[attr-defined]
    loader = sys.modules.get("torch.utils.data._utils")
    if loader is not None:
        # Tells loaders that are still open not to wait for their workers.
        _at_exit(loader._set_python_exit_flag)


def _take_signals() -> None:
    """Handlers as a starting interpreter has them."""
    signal.set_wakeup_fd(-1)
    for number in SIGNALS:
        handler = _START_HANDLERS.get(number, _DEFAULT)
        if get_handler(number) is not handler:
            set_handler(number, handler)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _empty_main(inherited: dict[str, Any]) -> None:
    values = sys.modules["__main__"].__dict__
    made = [name for name, value in values.items() if inherited.get(name, inherited) is not value]
    # In the interpreter's order: private names first.
    for private in (True, False):
        for name in made:
            if name != "__builtins__" and (name.startswith("_") and name[1:2] != "_") is private:
                values[name] = None
    made.clear()
    _collect()


def _attempt(part: Callable[[], object]) -> None:
    try:
        part()
    except BaseException:
        print_exception()
