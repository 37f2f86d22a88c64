"""What the zygote prepares for one episode and hands to the process it forks."""

import os
import socket
from dataclasses import dataclass

from worker.episode_group import EpisodeGroup


@dataclass(slots=True)
class Job:
    """What the zygote prepared for one episode.

    Attributes:
        connection: Frame socket to the service.
        link: Where the worker's exit status is reported to the zygote.
        stdout_fd, stderr_fd: Writing ends of the output pipes.
        readers: Reading ends that keep the pipes open until the service has its own.
        stdout, stderr: Paths of the pipes.
        group: The episode's cgroups.
        work: The work folder on the host, None where the episode gets a file system of its own.
    """

    connection: socket.socket
    link: socket.socket
    stdout_fd: int
    stderr_fd: int
    readers: list[int]
    stdout: str
    stderr: str
    group: EpisodeGroup
    work: str | None

    def descriptors(self) -> list[int]:
        return [self.connection.fileno(), self.link.fileno(), self.stdout_fd, self.stderr_fd, *self.readers]

    def close(self) -> None:
        """Drop the zygote's copies."""
        self.connection.close()
        self.link.close()
        for descriptor in (self.stdout_fd, self.stderr_fd, *self.readers):
            os.close(descriptor)
