"""The init of one episode: forks the worker, reaps, and ends the tree when the service lets go.

Its hold on the service is the frame socket it shares with the worker: when
the service closes it, or dies, the kernel reports a hang-up here, whatever
agent code does. It doesn't depend on the zygote once it is forked.
"""

import json
import os
import select
import signal
import socket
import traceback
from typing import NoReturn

from worker.confinement import Confinement
from worker.job import Job
from worker.process_tree import end_descendants
from worker.worker import serve


def run_init(job: Job, zygote_link: socket.socket, confinement: Confinement) -> NoReturn:
    """Become the init of an episode in a process that was just forked. Never returns.

    Args:
        zygote_link: The zygote's end of the job's link, which is not this process's to hold.
    """
    status = 1
    try:
        zygote_link.close()
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        os.setsid()
        confinement.enter_init(job)
        status = _supervise(job, confinement)
    except BaseException:
        # Descriptor 2 is still the zygote's, whose lines the service logs.
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(status)


def _supervise(job: Job, confinement: Confinement) -> int:
    wakeup, wakeup_writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
    signal.set_wakeup_fd(wakeup_writer, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    if not confinement.kernel_ends_tree:
        # Without a pid namespace the zygote asks; inside one only the kernel's kill reaches an init.
        signal.signal(signal.SIGTERM, lambda *_: None)
    worker = os.fork()
    if worker == 0:
        os.close(wakeup)
        os.close(wakeup_writer)
        _run_worker(job, confinement)
    for descriptor in (job.stdout_fd, job.stderr_fd, *job.readers):
        os.close(descriptor)
    confinement.settle_init()
    null = os.open(os.devnull, os.O_RDWR)
    for target in (0, 1, 2):
        os.dup2(null, target)
    poller = select.poll()
    poller.register(wakeup, select.POLLIN)
    # No event asked for: only the hang-up, which is always reported.
    poller.register(job.connection.fileno(), 0)
    while True:
        events = poller.poll()
        received = _take_signals(wakeup)
        if signal.SIGTERM in received or any(descriptor != wakeup for descriptor, _event in events):
            break
        if _reap(worker, job.link):
            break
    if not confinement.kernel_ends_tree:
        end_descendants()
    return 0


def _take_signals(wakeup: int) -> bytes:
    try:
        return os.read(wakeup, 512)
    except BlockingIOError:
        return b""


def _reap(worker: int, link: socket.socket) -> bool:
    """Reap what ended; True when the worker was among it, after reporting how it ended."""
    while True:
        try:
            pid, status = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return True
        if pid == 0:
            return False
        if pid == worker:
            code = os.waitstatus_to_exitcode(status)
            report = {"code": code, "signal": None} if code >= 0 else {"code": None, "signal": -code}
            try:
                link.sendall(json.dumps(report).encode())
            except OSError:
                # The zygote is gone; the service learns of the end from the socket.
                return True
            return True


def _run_worker(job: Job, confinement: Confinement) -> NoReturn:
    status = 1
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_DFL)
        serve(job, confinement)
        status = 0
    except BaseException:
        os.write(2, traceback.format_exc().encode())
    finally:
        os._exit(status)
