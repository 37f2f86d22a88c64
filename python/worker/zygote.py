"""The zygote: imports once, then forks one worker per request.

It runs no agent code, holds no secret and has one thread. Control frames come
on stdin and go to stdout; when stdin ends, the zygote ends what is left of its
workers and leaves. If the service left without a word, it removes the run folder.

A request that fails is answered and logged: nothing but the end of stdin ends
the zygote, since other episodes depend on it.
"""

import json
import os
import platform
import select
import signal
import socket
import subprocess
import time
from dataclasses import dataclass
from typing import Any

from worker.confinement import Confinement, ConfinementError
from worker.control import guarded, log_exception, read_line, say
from worker.episode_group import EpisodeGroup, NoGroup
from worker.init import run_init
from worker.preload import PreloadError, import_packages, settle_memory
from worker.prepare import prepare
from worker.protocol import PROTOCOL_VERSION

_READ_BYTES = 1 << 16
_LAST_WAIT_S = 5.0


@dataclass(slots=True)
class Child:
    """A forked episode: its init's process id, the link its end is reported on, its cgroup."""

    worker_id: str
    link: socket.socket
    group: EpisodeGroup


class Zygote:
    """Answers control frames until stdin ends."""

    def __init__(self, configure: dict[str, Any], confinement: Confinement) -> None:
        self._run_dir: str = configure["run_dir"]
        self._confinement = confinement
        # Held as a path-only descriptor: once the service has removed the name, nobody else can connect.
        self._socket = os.open(configure["socket"], os.O_PATH)
        os.unlink(configure["socket"])
        self._children: dict[int, Child] = {}
        self._removable: list[EpisodeGroup] = []
        self._input = b""
        self._told_to_stop = False
        self._wakeup, wakeup_writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wakeup_writer, warn_on_full_buffer=False)
        signal.signal(signal.SIGCHLD, lambda *_: None)

    def serve(self) -> None:
        poller = select.poll()
        poller.register(0, select.POLLIN)
        poller.register(self._wakeup, select.POLLIN)
        while True:
            timeout_ms = 200 if self._removable else None
            for descriptor, _event in poller.poll(timeout_ms):
                if descriptor == 0 and not self._read_control():
                    return
            self._drain_wakeup()
            self._reap()
            self._remove_groups()

    def finish(self) -> None:
        """End and reap every worker; the run folder too, if the service can't do it any more."""
        for pid, child in self._children.items():
            guarded(lambda pid=pid, child=child: self._end(pid, child))  # type: ignore[misc]
        deadline = time.monotonic() + _LAST_WAIT_S
        while self._children and time.monotonic() < deadline:
            select.select([self._wakeup], [], [], 0.05)
            self._drain_wakeup()
            self._reap()
        for pid in self._children:
            os.kill(pid, signal.SIGKILL)
        self._confinement.sweep()
        while self._removable and time.monotonic() < deadline:
            self._remove_groups()
            time.sleep(0.005)
        if not self._told_to_stop:
            # By descriptor, not by path: agent code may have nested folders deeper than any path can be long.
            subprocess.run(["rm", "-rf", "--one-file-system", self._run_dir], check=False)

    def _remove_groups(self) -> None:
        waiting = []
        for group in self._removable:
            try:
                gone = group.remove()
            except OSError:
                log_exception()
                gone = True
            if not gone:
                waiting.append(group)
        self._removable = waiting

    def _read_control(self) -> bool:
        chunk = os.read(0, _READ_BYTES)
        if not chunk:
            return False
        *lines, self._input = (self._input + chunk).split(b"\n")
        for line in lines:
            guarded(lambda line=line: self._answer(json.loads(line)))  # type: ignore[misc]
        return True

    def _answer(self, frame: dict[str, Any]) -> None:
        if frame["type"] == "fork":
            self._fork(frame["worker_id"], frame["work"])
        elif frame["type"] == "kill":
            self._kill(frame["worker_id"])
        elif frame["type"] == "stop":
            self._told_to_stop = True

    def _fork(self, worker_id: str, work: str | None) -> None:
        try:
            made = prepare(worker_id, work, run_dir=self._run_dir, service=self._socket, confinement=self._confinement)
        except OSError as error:
            say("fork_failed", worker_id=worker_id, message=f"could not prepare a worker: {error}")
            return
        try:
            pid = self._confinement.fork_init()
        except OSError as error:
            made.discard()
            say("fork_failed", worker_id=worker_id, message=f"could not fork a worker: {error}")
            return
        job = made.job
        if pid == 0:
            run_init(job, made.link, self._confinement)
        job.close()
        self._children[pid] = Child(worker_id, made.link, made.group)
        facts = {"stdout": job.stdout, "stderr": job.stderr, "accounting": made.accounting}
        say("forked", worker_id=worker_id, pid=pid, **facts)

    def _kill(self, worker_id: str) -> None:
        for pid, child in self._children.items():
            if child.worker_id == worker_id:
                self._end(pid, child)

    def _end(self, pid: int, child: Child) -> None:
        # The child is not reaped yet, so the number is still its own.
        if self._confinement.kernel_ends_tree:
            os.kill(pid, signal.SIGKILL)
            return
        child.group.kill()
        os.kill(pid, signal.SIGTERM)

    def _reap(self) -> None:
        while True:
            try:
                pid, _status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            child = self._children.pop(pid, None)
            if child is not None:
                self._report(child)

    def _report(self, child: Child) -> None:
        status = _read_status(child.link)
        child.link.close()
        self._removable.append(child.group)
        try:
            usage = child.group.final_usage()
        except OSError:
            log_exception()
            usage = NoGroup().final_usage()
        say("exited", worker_id=child.worker_id, code=status.get("code"), signal=status.get("signal"), **usage)

    def _drain_wakeup(self) -> None:
        try:
            while os.read(self._wakeup, 512):
                continue
        except BlockingIOError:
            return


def main() -> None:
    """Entry point; the first line on stdin configures the zygote."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    configure = json.loads(read_line())
    try:
        confinement = Confinement.choose(configure)
    except ConfinementError as error:
        say("refused", message=str(error))
        return
    try:
        torch = import_packages(configure["preload"])
    except PreloadError as error:
        say("refused", message=str(error))
        return
    confinement.prepare()
    zygote = Zygote(configure, confinement)
    settle_memory()
    say(
        "ready",
        protocol=PROTOCOL_VERSION,
        pid=os.getpid(),
        python=platform.python_version(),
        torch=torch,
        level=confinement.level,
        required=sorted(confinement.required),
        notes=confinement.notes,
    )
    zygote.serve()
    zygote.finish()


def _read_status(link: socket.socket) -> dict[str, Any]:
    try:
        data = link.recv(_READ_BYTES)
    except BlockingIOError:
        return {}
    return json.loads(data) if data else {}
