"""Run a module as `python -m` does, in a process group that dies with the process that started it.

    python run_bound.py PARENT_PID MODULE [ARGUMENT...]

An installer that outlived its setup would go on writing into a folder that the
next setup has emptied. On Linux the kernel sends SIGTERM when the parent is
gone, and SIGTERM ends the whole group, children of the module included.
Elsewhere only the parent's own signals end it.
"""

import ctypes
import os
import runpy
import signal
import sys

PR_SET_PDEATHSIG = 1


def bind_to_parent(parent_pid: int) -> None:
    """Lead a new process group that ends on SIGTERM, and on the parent's death."""
    os.setpgid(0, 0)
    signal.signal(signal.SIGTERM, lambda _number, _frame: os.killpg(0, signal.SIGKILL))
    if sys.platform == "linux":
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGTERM)
    if os.getppid() != parent_pid:
        # It died before the kernel was asked to tell.
        sys.exit("the process that started this is gone")


def main() -> None:
    """Bind, then become the module."""
    parent_pid, module = int(sys.argv[1]), sys.argv[2]
    bind_to_parent(parent_pid)
    sys.argv = sys.argv[2:]
    runpy.run_module(module, run_name="__main__", alter_sys=True)


if __name__ == "__main__":
    main()
