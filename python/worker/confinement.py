"""From a level's name to a confined worker: plans once in the zygote, applies per episode.

The order in a worker is fixed: file system and namespaces (init), identity,
rlimits, Landlock, seccomp, then the probe that tries the doors. Whatever fails
raises, and the process ends without having run agent code.
"""

import itertools
import multiprocessing
import os
from dataclasses import replace
from typing import Any, Literal

from worker.cgroup_group import CgroupGroup, remove_left_behind
from worker.channel import own_signals
from worker.environment import enter_workspace
from worker.episode_group import EpisodeGroup, NoGroup
from worker.isolation import landlock, rlimits, seccomp, syscalls
from worker.isolation.cgroup import CgroupLimits
from worker.isolation.cgroup_host import CgroupHost
from worker.isolation.host_report import detect_levels
from worker.isolation.identity import (
    Identity,
    confine_init,
    drop,
    enter_zygote_userns,
    needs_zygote_userns,
    plan_identity,
)
from worker.isolation.namespaces import PidNamespaceForker
from worker.isolation.policy import load_policy
from worker.isolation.private_root import enter
from worker.isolation.probe import ProbeSpec, attest, required_for
from worker.isolation.python_paths import interpreter_paths
from worker.isolation.root_plan import RootPlan, plan_root
from worker.isolation.root_template import make_template
from worker.isolation.value_sharing import share_by_value
from worker.job import Job

Level = Literal["none", "landlock", "namespaces"]
LEVELS: tuple[Level, ...] = ("none", "landlock", "namespaces")

#: Private writable memory an episode may map beyond what it may hold: stacks of threads are mostly untouched.
_MAPPED_SLACK_BYTES = 1 << 30


class ConfinementError(Exception):
    """The host can't give what the configuration asks for; the message says what and why."""


class Confinement:
    """The plan of one zygote, the same for all of its workers."""

    def __init__(self, level: Level, configure: dict[str, Any], notes: list[str], user_namespace: bool) -> None:
        self.level: Level = level
        self.notes = notes
        self.required = frozenset() if level == "none" else required_for(level)
        self._configure = configure
        self._limits: dict[str, int] = configure["limits"]
        self._policy = load_policy()
        self._slots = itertools.count()
        self._zygote = os.getpid()
        self._service = os.getppid()
        # Before a user namespace, inside which the host's cgroups are nobody's.
        self._groups = CgroupHost.detect()
        self._user_namespace = user_namespace
        self._forker: PidNamespaceForker | None = None
        self._private_bytes = 0
        self._filters: dict[bool, bytes] = {}
        self._root: RootPlan | None = None
        self._template = -1
        self._paths = interpreter_paths()
        self._identity: Identity | None = None

    @classmethod
    def choose(cls, configure: dict[str, Any]) -> "Confinement":
        """Take the level asked for, or the strongest one the host gives; call it before anything starts a thread.

        Raises:
            ConfinementError: The host gives less than the configured minimum.
        """
        wanted, minimum = configure["level"], configure["min_level"]
        report = detect_levels()
        offered = [level for level in LEVELS if level == "none" or level in report.levels]
        level = offered[-1] if wanted == "best" else wanted
        if level not in offered or LEVELS.index(level) < LEVELS.index(minimum):
            missing = [f"{layer}: {why}" for layer, why in report.layers.items() if why is not None]
            reasons = " ".join([*missing, *report.notes]) or "No layer is missing."
            asked = f"level {wanted}, at least {minimum}"
            raise ConfinementError(f"this host gives isolation level {offered[-1]}, asked for {asked}. {reasons}")
        return cls(level, configure, list(report.notes), report.user_namespace)

    @property
    def kernel_ends_tree(self) -> bool:
        """The end of init is the end of everything below it."""
        return self.level == "namespaces"

    def prepare(self) -> None:
        """Plan what all workers share; call it after the imports, when the memory to be shared is there."""
        self._groups.sweep_stale()
        self.sweep()
        self._private_bytes = rlimits.private_bytes()
        if self.level == "namespaces":
            if needs_zygote_userns():
                enter_zygote_userns()
            self._forker = PidNamespaceForker()
            quotas = replace(
                self._policy.quotas,
                work_and_tmp_bytes=self._limits["disk_bytes"],
                work_and_tmp_inodes=self._limits["inodes"],
                shm_bytes=self._limits["shm_bytes"],
            )
            self._root = plan_root(self._policy.private_root, self._policy.identity, quotas, self._paths)
            self._template = make_template(self._root, self._forker)

    def sweep(self) -> None:
        """Remove control groups of episodes whose zygote is gone, and which ended since."""
        remove_left_behind(self._groups, self._service)

    def make_group(self, worker_id: str) -> EpisodeGroup:
        """Make the cgroups of an episode, or none where the host gives none."""
        if self._groups.version == "none":
            return NoGroup()
        limits = CgroupLimits(self._limits["memory_bytes"], self._limits["processes"])
        return CgroupGroup(self._groups.create(worker_id, limits, self._service, killable=not self.kernel_ends_tree))

    def fork_init(self) -> int:
        """Fork; the child is pid 1 of a pid namespace of its own at level namespaces."""
        slot = next(self._slots)
        namespaces = self.level == "namespaces"
        # The zygote's pid keeps two servers of one host from picking the same uids.
        self._identity = plan_identity(
            self._policy.identity,
            self._zygote * 4096 + slot % 4096,
            self._paths,
            private_root=namespaces,
            user_namespace=self._user_namespace,
        )
        # The same filter for all workers of one kind, compiled where it is shared.
        self._filter(self._identity.own_uid)
        return os.fork() if self._forker is None else self._forker.fork()

    def enter_init(self, job: Job) -> None:
        """Confine the episode's init and all it will fork."""
        null = os.open(os.devnull, os.O_RDWR)
        for target in (0, 1):
            os.dup2(null, target)
        syscalls.close_all_but({0, 1, 2, *job.descriptors(), *([self._template] if self._template >= 0 else [])})
        job.group.attach()
        if self.level != "namespaces":
            syscalls.set_subreaper()
            return
        assert self._root is not None and self._identity is not None
        enter(self._root, self._template, self._identity.uid, self._identity.gid)
        os.close(self._template)

    def settle_init(self) -> None:
        """Leave init nothing but its hold on the worker, once that is forked."""
        if self.level != "none":
            confine_init()

    def enter_worker(self, job: Job) -> dict[str, Any]:
        """Confine the worker; returns what it found when it tried the doors."""
        work = self._root.work if self._root is not None else job.work
        assert work is not None and self._identity is not None
        syscalls.set_parent_death_signal(9)
        if self._root is None:
            os.chown(work, self._identity.uid, self._identity.gid)
        os.setsid()
        facts: dict[str, Any] = {"level": self.level}
        enter_workspace(work, shared_tmp=self._root is not None)
        if self.level == "none":
            rlimits.apply_rlimits(self._rlimits(binds=False), self._policy.rlimits)
            own_signals(job.connection)
            return facts
        report = drop(self._identity)
        # By the uid that the worker keeps, and before seccomp refuses it.
        own_signals(job.connection)
        rlimits.apply_rlimits(self._rlimits(report.nproc_binds), self._policy.rlimits)
        abi = syscalls.landlock_abi()
        if self._root is None:
            share_by_value()
            # Other start methods bind a named socket, which this level refuses.
            multiprocessing.set_start_method("fork")
        landlock.restrict(self._landlock_rules(work), abi)
        seccomp.install(self._filter(report.own_uid))
        spec = ProbeSpec(
            level=self.level,
            canary_path=self._configure["canary"],
            foreign_pid=self._zygote,
            allowed_fds=frozenset({0, 1, 2, job.connection.fileno(), job.stdout_fd, job.stderr_fd, *job.readers}),
            writable=(*self._root.writable, "/dev/shm") if self._root is not None else (work,),
            python_paths=self._paths,
        )
        return facts | attest(spec)

    def _filter(self, own_uid: bool) -> bytes:
        if own_uid not in self._filters:
            scoped = self._root is not None or landlock.signal_scope_offered(syscalls.landlock_abi())
            context = seccomp.SeccompContext(
                ipc_namespace=self._root is not None,
                private_root=self._root is not None,
                own_uid=own_uid,
                protected_pids=() if scoped else (self._zygote, self._service),
            )
            self._filters[own_uid] = seccomp.compile_filter(self._policy.seccomp, context)
        return self._filters[own_uid]

    def _landlock_rules(self, work: str) -> list[landlock.PathRule]:
        if self._root is not None:
            return landlock.private_root_rules(self._policy.landlock, self._root.writable, self._root.gpu_devices)
        return landlock.shared_root_rules(self._policy.landlock, self._paths, [work])

    def _rlimits(self, binds: bool) -> rlimits.Limits:
        return rlimits.Limits(
            open_files=self._limits["open_files"],
            file_bytes=max(self._limits["disk_bytes"], self._limits["shm_bytes"]),
            processes=self._limits["processes"] if binds else None,
            data_bytes=self._private_bytes + self._limits["memory_bytes"] + _MAPPED_SLACK_BYTES,
        )
