import errno
import os
import signal
import subprocess
import unittest
from dataclasses import replace
from pathlib import Path
from typing import Any

from worker.isolation import syscalls as sc
from worker.isolation.cgroup import CgroupLimits, EpisodeCgroup

from .confined import Lost, Setup, in_child, run, signal_of
from .hosts import GROUPS, VARIANTS

MIB = 1 << 20


def wait_empty(group: EpisodeCgroup) -> None:
    """Reap and remove; the kernel needs a moment after the last exit."""
    while not group.remove():
        os.sched_yield()


@unittest.skipIf(GROUPS.memory is None or GROUPS.pids is None, f"no writable cgroup here: {'; '.join(GROUPS.notes)}")
class EpisodeGroup(unittest.TestCase):
    def make(self, memory_bytes: int = 256 * MIB, processes: int = 64) -> EpisodeCgroup:
        limits = CgroupLimits(memory_bytes, processes)
        group = GROUPS.create(f"test-{self._testMethodName[:40]}", limits)

        def clean() -> None:
            if any(path.exists() for path in group.directories()):
                group.kill()
                wait_empty(group)

        self.addCleanup(clean)
        return group

    def test_a_memory_bomb_is_killed_and_counted(self) -> None:
        group = self.make(memory_bytes=64 * MIB)
        self.assertEqual(group.oom_kills(), 0)
        with self.assertRaises(Lost) as caught:
            in_child(lambda: len(bytearray(b"x" * (256 * MIB))), group=group)
        self.assertEqual(signal_of(caught.exception), signal.SIGKILL)
        self.assertGreaterEqual(group.oom_kills(), 1)

    def test_a_memory_bomb_in_a_child_counts_for_the_tree(self) -> None:
        group = self.make(memory_bytes=64 * MIB)

        def body() -> int:
            pid = os.fork()
            if pid == 0:
                bytearray(b"x" * (256 * MIB))
                os._exit(0)
            return os.waitpid(pid, 0)[1]

        try:
            self.assertEqual(in_child(body, group=group), signal.SIGKILL)
        except Lost as lost:
            # memory.oom.group of cgroup v2 takes the whole tree.
            self.assertEqual(signal_of(lost), signal.SIGKILL)
        self.assertGreaterEqual(group.oom_kills(), 1)

    def test_tmpfs_is_charged(self) -> None:
        group = self.make(memory_bytes=48 * MIB)

        def body() -> int:
            fd = os.memfd_create("hidden")
            for _ in range(128):
                os.write(fd, b"x" * MIB)
            return 0

        with self.assertRaises(Lost):
            in_child(body, group=group)
        self.assertGreaterEqual(group.oom_kills(), 1)

    def test_the_process_limit_refuses_and_counts(self) -> None:
        group = self.make(processes=8)

        def body() -> Any:
            reader, writer = os.pipe()
            count = 0
            try:
                while count < 50:
                    if os.fork() == 0:
                        os.close(writer)
                        os.read(reader, 1)
                        os._exit(0)
                    count += 1
            except BlockingIOError:
                return count
            finally:
                os.close(writer)

        self.assertEqual(in_child(body, group=group), 7)
        self.assertGreaterEqual(group.pids_limit_hits(), 1)

    def test_usage_is_counted_in_nanoseconds_and_bytes(self) -> None:
        group = self.make()
        in_child(lambda: len(bytearray(b"x" * (32 * MIB))) + sum(range(2_000_000)), group=group)
        cpu_ns, peak_bytes = group.usage()
        assert cpu_ns is not None and peak_bytes is not None
        self.assertGreater(cpu_ns, 5_000_000)
        self.assertLess(cpu_ns, 60_000_000_000)
        self.assertGreater(peak_bytes, 32 * MIB)

    def test_paths_are_files_with_what_they_promise(self) -> None:
        paths = self.make().paths()
        self.assertLessEqual({"memory_current", "memory_peak", "memory_events", "pids_events", "procs"}, set(paths))
        self.assertGreaterEqual(int(Path(paths["memory_current"]).read_text()), 0)
        self.assertIn("oom_kill ", Path(paths["memory_events"]).read_text())
        self.assertIn("max ", Path(paths["pids_events"]).read_text())

    def leave_daemons(self, group: EpisodeCgroup) -> list[int]:
        """Two processes in sessions of their own, one of them stopped; their pids."""
        reader, writer = os.pipe()

        def body() -> int:
            for stopped in (False, True):
                if os.fork() == 0:
                    os.setsid()
                    daemon = os.fork()
                    if daemon == 0:
                        # The answer of in_child ends when nobody can write it any more.
                        sc.close_all_but({0, 1, 2, writer})
                        signal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))
                        os.write(writer, b"%d\n" % os.getpid())
                        if stopped:
                            os.kill(os.getpid(), signal.SIGSTOP)
                        while True:
                            signal.pause()
                    os._exit(0)
                os.wait()
            return 0

        in_child(body, group=group)
        os.close(writer)
        pids: list[int] = []
        with os.fdopen(reader, "rb") as file:
            for _ in range(2):
                pids.append(int(file.readline()))
            self.assertEqual(group.processes(), set(pids))
            return pids

    def test_kill_reaches_daemons_and_leaves_no_directory(self) -> None:
        group = self.make()
        self.leave_daemons(group)
        group.kill()
        wait_empty(group)
        self.assertFalse([path for path in group.directories() if path.exists()])

    def test_kill_works_without_cgroup_kill(self) -> None:
        for freezer in {GROUPS.freezer, None}:
            with self.subTest(freezer=freezer is not None):
                host = replace(GROUPS, unified=None, freezer=freezer)
                group = host.create(f"test-plain-{freezer is not None}", CgroupLimits(64 * MIB, 16))
                self.leave_daemons(group)
                group.kill()
                wait_empty(group)

    def test_remove_answers_false_while_busy(self) -> None:
        group = self.make()
        child = subprocess.Popen(["/bin/sleep", "60"])
        group.attach(child.pid)
        self.assertFalse(group.remove())
        group.kill()
        child.wait()
        wait_empty(group)
        self.assertTrue(group.remove())

    def test_a_failed_creation_leaves_nothing(self) -> None:
        with self.assertRaisesRegex(OSError, "pids.max"):
            GROUPS.create("test-refused", CgroupLimits(64 * MIB, -5))
        assert GROUPS.memory is not None
        self.assertEqual(list(GROUPS.memory.glob("forkyard.*.test-refused")), [])

    def test_sweep_removes_the_groups_of_dead_services_only(self) -> None:
        owner = subprocess.Popen(["/bin/sleep", "60"])
        dead = GROUPS.create("test-sweep-dead", CgroupLimits(64 * MIB, 8), owner.pid)
        alive = self.make()
        left_over = subprocess.Popen(["/bin/sleep", "60"])
        dead.attach(left_over.pid)
        self.assertNotIn(dead.name, GROUPS.sweep_stale())
        owner.kill()
        owner.wait()
        removed = GROUPS.sweep_stale()
        self.assertEqual(left_over.wait(), -signal.SIGKILL)
        while dead.name not in removed:
            removed += GROUPS.sweep_stale()
        self.assertTrue(alive.memory is not None and alive.memory.exists())
        self.assertNotIn(alive.name, removed)

    def test_a_confined_worker_is_killed_by_its_groups_limit(self) -> None:
        for level, plain in VARIANTS:
            if plain:
                continue  # A plain user's test episode cannot write here.
            with self.subTest(level=level):
                group = GROUPS.create(f"test-confined-{level}", CgroupLimits(64 * MIB, 64))
                with self.assertRaises(Lost) as caught:
                    run(lambda: len(bytearray(b"x" * (256 * MIB))), Setup(level=level, group=group))
                self.assertEqual(signal_of(caught.exception), signal.SIGKILL)
                self.assertGreaterEqual(group.oom_kills(), 1)
                wait_empty(group)


class AttachErrors(unittest.TestCase):
    def test_a_missing_group_raises_enoent(self) -> None:
        missing = Path("/sys/fs/cgroup/no-such-group")
        group = EpisodeCgroup("x", missing, None, None, None, None)
        with self.assertRaises(OSError) as caught:
            group.attach(0)
        self.assertEqual(caught.exception.errno, errno.ENOENT)
        self.assertTrue(group.remove())
