"""The worker's life: confined, ready, then one frame after the other until the socket closes."""

import base64
import dataclasses
import gc
import os
import socket
import sys
from os import _exit
from typing import Any

from worker.calls import Helpers
from worker.capture import StandardStreams
from worker.cell import CellResult, CellRunner
from worker.chance import seed_everything
from worker.channel import Channel, ChannelClosed
from worker.confinement import Confinement
from worker.job import Job
from worker.namespace import Namespace, as_text
from worker.protocol import PROTOCOL_VERSION, FrameError, LookupFrame, OpenFrame, RunFrame, cut_answer

# Not dataclasses.asdict, which copies every list and dict in depth.
_RESULT_FIELDS = tuple(field.name for field in dataclasses.fields(CellResult))
#: What a worker is before it is opened.
_NOTHING = OpenFrame(0, {}, {}, True, [], None, 1)


class Worker:
    """Serves one episode."""

    def __init__(self, connection: socket.socket, streams: StandardStreams, release: list[int]) -> None:
        self._channel = Channel(connection)
        self._streams = streams
        self._release = release
        self._helpers = Helpers(self._channel)
        self._runner: CellRunner | None = None
        self._opened = _NOTHING
        # Before agent code can go elsewhere.
        self._work = os.getcwd()

    def serve(self, attestation: dict[str, Any]) -> None:
        """Say ready, then answer frames. Returns when the service has closed the socket."""
        self._warm_up()
        self._channel.send("ready", protocol=PROTOCOL_VERSION, attestation=attestation)
        try:
            while True:
                frame = self._channel.next_frame()
                if isinstance(frame, RunFrame):
                    self._run(frame)
                elif isinstance(frame, LookupFrame):
                    self._lookup(frame)
                elif isinstance(frame, OpenFrame):
                    self._open(frame)
        except ChannelClosed:
            return

    def _warm_up(self) -> None:
        """Open and run once for nothing: the first touch copies the pages shared with the zygote, so not in a step."""
        result = self._make_runner(_NOTHING).run(RunFrame(0, "pass"))
        if result.exception is not None:
            raise RuntimeError(f"a cell that does nothing failed: {result.exception}")

    def _open(self, frame: OpenFrame) -> None:
        # The service holds the reading ends now, so the worker's own can go.
        while self._release:
            os.close(self._release.pop())
        _write_files(self._work, frame.files)
        self._opened = frame
        self._runner = self._make_runner(frame)
        self._channel.send("opened", id=frame.id, variables=self._runner.names())

    def _make_runner(self, frame: OpenFrame) -> CellRunner:
        torch = sys.modules.get("torch")
        if torch is not None and torch.get_num_threads() != frame.threads:
            torch.set_num_threads(frame.threads)
        namespace = self._make_namespace(frame)
        self._helpers.names = namespace.public_names
        self._helpers.find = namespace.values.get
        self._helpers.note = self._streams.print_error
        seed_everything(frame.seed)
        return CellRunner(self._channel, self._streams, namespace, self._work)

    def _make_namespace(self, frame: OpenFrame) -> Namespace:
        helpers = self._helpers.make(frame.call_helpers, endings=frame.endings)
        return Namespace(frame.variables, helpers, has_answer=frame.endings)

    def _run(self, frame: RunFrame) -> None:
        assert self._runner is not None, "a run frame before an open frame"
        self._helpers.cell = frame.id
        namespace = self._make_namespace(self._opened) if frame.fresh else None
        result = self._runner.run(frame, namespace)
        try:
            self._send(result)
        except FrameError as error:
            self._streams.print_error(f"note: the report is too long and was dropped: {error}\n")
            self._send(dataclasses.replace(result, report=None))

    def _send(self, result: CellResult) -> None:
        self._channel.send("result", **{name: getattr(result, name) for name in _RESULT_FIELDS})

    def _lookup(self, frame: LookupFrame) -> None:
        value = self._runner.lookup(frame.names) if self._runner is not None else None
        self._channel.send("value", id=frame.id, value=None if value is None else cut_answer(as_text(value)))


def _write_files(work: str, files: dict[str, str]) -> None:
    for path, text in files.items():
        target = os.path.join(work, path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        with open(target, "wb") as file:
            file.write(base64.b64decode(text))


def serve(job: Job, confinement: Confinement) -> None:
    """Confine this process, then serve the episode until the service closes the socket."""
    job.link.close()
    attestation = confinement.enter_worker(job)
    null = os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC)
    streams = StandardStreams(null, job.stdout_fd, job.stderr_fd)
    for descriptor in (null, job.stdout_fd, job.stderr_fd):
        os.close(descriptor)
    gc.enable()
    try:
        Worker(job.connection, streams, job.readers).serve(attestation)
    except BaseException as error:
        # Descriptor 2 is the agent's by now: no frames of the worker, no paths of the host.
        # Where it is closed there is nowhere to say it, and the status alone tells.
        try:
            streams.print_error(f"the worker itself failed: {type(error).__name__}: {error}\n")
        finally:
            _exit(1)
