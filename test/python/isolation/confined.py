"""Runs a function as agent code would run: in a worker behind every layer of a level."""

import json
import os
import shutil
import signal
import tempfile
import traceback
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from worker.isolation import landlock, rlimits, seccomp
from worker.isolation import syscalls as sc
from worker.isolation.cgroup import EpisodeCgroup
from worker.isolation.identity import Identity, drop, enter_zygote_userns, needs_zygote_userns, plan_identity
from worker.isolation.namespaces import PidNamespaceForker
from worker.isolation.policy import Quotas, load_policy
from worker.isolation.private_root import enter
from worker.isolation.probe import Level, ProbeSpec, attest
from worker.isolation.python_paths import interpreter_paths, prefixes_reachable
from worker.isolation.root_plan import plan_root
from worker.isolation.root_template import make_template
from worker.isolation.value_sharing import share_by_value

PLAIN_USER = 65534
POLICY = load_policy()
#: Looked up while everything is reachable: a plain user may not enter a closed home.
PATHS = interpreter_paths()
REACHABLE = tuple(path for path in PATHS if prefixes_reachable([path]))

Body = Callable[[], Any]

_expected_fds: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Setup:
    """How to confine. `without` leaves layers out, to see that the others notice."""

    level: Level = "namespaces"
    plain_user: bool = False
    quotas: Quotas = POLICY.quotas
    limits: rlimits.Limits = field(default_factory=lambda: rlimits.Limits(1024, 256 << 20, processes=64))
    slot: int = 0
    group: EpisodeCgroup | None = None
    extra_paths: tuple[str, ...] = ()
    without: frozenset[str] = frozenset()


class Lost(Exception):
    """The worker ended without an answer; `status` is its wait status, None if it never started."""

    def __init__(self, message: str, status: int | None = None) -> None:
        super().__init__(message)
        self.status = status


def run(body: Body, setup: Setup | None = None) -> Any:
    """Run `body` confined and return its JSON-able result.

    Raises:
        Lost: The worker was killed, or a layer or `body` raised; then the message is the traceback.
    """
    return in_child(lambda: _zygote(body, setup or Setup()))


def in_child(body: Body, fork: Callable[[], int] = os.fork, group: EpisodeCgroup | None = None) -> Any:
    """Run `body` in a child made by `fork` and return its JSON-able result."""
    reader, writer = os.pipe()
    pid = fork()
    if pid == 0:
        os.close(reader)
        status = 0
        try:
            if group is not None:
                group.attach(0)
            answer: dict[str, Any] = {"value": body()}
        except Lost as lost:
            answer = {"error": str(lost), "status": lost.status}
        except BaseException:
            answer = {"error": traceback.format_exc(), "status": None}
        try:
            view = memoryview(json.dumps(answer).encode())
            while view:
                view = view[os.write(writer, view) :]
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        text = file.read()
    _, status = os.waitpid(pid, 0)
    if not text:
        raise Lost(f"ended with wait status {status}", status)
    answer = json.loads(text)
    if "error" in answer:
        raise Lost(answer["error"], answer["status"])
    return answer["value"]


def signal_of(lost: Lost) -> signal.Signals | None:
    """The signal that ended the worker, if one did."""
    if lost.status is None or not os.WIFSIGNALED(lost.status):
        return None
    return signal.Signals(os.WTERMSIG(lost.status))


def _zygote(body: Body, setup: Setup) -> Any:
    paths = (*PATHS, *setup.extra_paths)
    if setup.plain_user and os.geteuid() == 0:
        os.setgroups([])
        os.setresgid(PLAIN_USER, PLAIN_USER, PLAIN_USER)
        os.setresuid(PLAIN_USER, PLAIN_USER, PLAIN_USER)
        sc.set_dumpable(True)
        paths = (*REACHABLE, *setup.extra_paths)
    if setup.level == "landlock":
        return _landlock_episode(body, setup, paths)
    if needs_zygote_userns():
        enter_zygote_userns()
    plan = plan_root(POLICY.private_root, POLICY.identity, setup.quotas, paths)
    forker = PidNamespaceForker()
    template = make_template(plan, forker)
    identity = plan_identity(POLICY.identity, setup.slot, paths, private_root=True, user_namespace=True)

    def init() -> Any:
        enter(plan, template, identity.uid, identity.gid)
        os.close(template)
        return in_child(worker)

    def worker() -> Any:
        os.chdir(plan.work)
        rules = landlock.private_root_rules(POLICY.landlock, plan.writable)
        return _confine_and_run(body, setup, identity, rules)

    return in_child(init, forker.fork, setup.group)


def _landlock_episode(body: Body, setup: Setup, paths: tuple[str, ...]) -> Any:
    identity = plan_identity(POLICY.identity, setup.slot, paths, private_root=False, user_namespace=True)
    work = tempfile.mkdtemp(prefix="forkyard-test-")
    os.chown(work, identity.uid, identity.gid)

    def init() -> Any:
        os.setsid()
        sc.set_subreaper()
        return in_child(worker)

    def worker() -> Any:
        os.setsid()
        os.chdir(work)
        os.environ["TMPDIR"] = work
        tempfile.tempdir = None
        share_by_value()
        return _confine_and_run(body, setup, identity, landlock.shared_root_rules(POLICY.landlock, paths, [work]))

    try:
        return in_child(init, group=setup.group)
    finally:
        shutil.rmtree(work)


def _confine_and_run(body: Body, setup: Setup, identity: Identity, rules: list[landlock.PathRule]) -> Any:
    global _expected_fds
    private = setup.level == "namespaces"
    _expected_fds = frozenset(int(name) for name in os.listdir("/proc/self/fd"))
    report = drop(identity)
    processes = setup.limits.processes if report.nproc_binds else None
    rlimits.apply_rlimits(replace(setup.limits, processes=processes), POLICY.rlimits)
    if "landlock" not in setup.without:
        landlock.restrict(rules, sc.landlock_abi())
    if "seccomp" not in setup.without:
        context = seccomp.SeccompContext(ipc_namespace=private, private_root=private, own_uid=identity.own_uid)
        seccomp.install(seccomp.compile_filter(POLICY.seccomp, context))
    return body()


def probe_here(level: Level, canary: str, foreign_pid: int) -> dict[str, bool | str]:
    """Attest from within a body; the descriptors expected are those open before the confinement."""
    writable = (os.getcwd(), "/tmp", "/dev/shm") if level == "namespaces" else (os.getcwd(),)
    return attest(ProbeSpec(level, canary, foreign_pid, _expected_fds, writable, PATHS))
