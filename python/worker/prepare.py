"""What the zygote makes for an episode before it forks: the channel, the pipes, the control group."""

import contextlib
import os
import socket
from dataclasses import dataclass

from worker.confinement import Confinement
from worker.episode_group import EpisodeGroup
from worker.job import Job


@dataclass(slots=True)
class Prepared:
    """The job of the child and what the zygote keeps of it.

    Attributes:
        link: Where the init reports how the worker ended.
        accounting: Files that the service may read.
    """

    job: Job
    link: socket.socket
    group: EpisodeGroup
    accounting: dict[str, str | None]

    def discard(self) -> None:
        """Take everything back: there was no fork."""
        self.job.close()
        self.link.close()
        for path in (self.job.stdout, self.job.stderr):
            _unlink(path)
        self.group.remove()


def prepare(worker_id: str, work: str | None, *, run_dir: str, service: int, confinement: Confinement) -> Prepared:
    """Connect to the service and make what the episode needs; nothing is left behind on failure.

    Args:
        service: Path-only descriptor of the service's socket.

    Raises:
        OSError: Descriptors, disk or control groups ran out, or the service is gone.
    """
    with contextlib.ExitStack() as undo:
        connection = undo.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_STREAM))
        connection.connect(f"/proc/self/fd/{service}")
        connection.sendall(worker_id.encode() + b"\n")
        near, far = socket.socketpair()
        undo.enter_context(near)
        undo.enter_context(far)
        near.setblocking(False)
        fifos = [os.path.join(run_dir, f"{worker_id}.{name}") for name in ("out", "err")]
        readers, writers = [], []
        for path in fifos:
            os.mkfifo(path, 0o600)
            undo.callback(_unlink, path)
            # A reader first, or opening to write would wait for the service; it goes when the service has its own.
            readers.append(os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC))
            undo.callback(os.close, readers[-1])
            writers.append(os.open(path, os.O_WRONLY | os.O_CLOEXEC))
            undo.callback(os.close, writers[-1])
        group = confinement.make_group(worker_id)
        undo.callback(group.remove)
        accounting = group.accounting()
        undo.pop_all()
    job = Job(connection, far, writers[0], writers[1], readers, fifos[0], fifos[1], group, work)
    return Prepared(job, near, group, accounting)


def _unlink(path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)
