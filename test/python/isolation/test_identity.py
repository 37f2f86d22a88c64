import os
import signal
import tempfile
import threading
import unittest
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from worker.isolation.identity import confine_init, plan_identity
from worker.isolation.rlimits import Limits

from .confined import POLICY, Setup, in_child, run
from .hosts import IS_ROOT, VARIANTS, missing

PROCESSES = 24


def fork_until_refused(most: int, then: Callable[[], object] = lambda: None) -> tuple[int, str]:
    """Fork sleepers until refused or `most` live, call `then`: how many and the exception's name."""
    reader, writer = os.pipe()
    children = []
    try:
        while len(children) < most:
            pid = os.fork()
            if pid == 0:
                os.close(writer)
                os.read(reader, 1)
                os._exit(0)
            children.append(pid)
        refused = "none"
    except OSError as error:
        refused = type(error).__name__
    then()
    os.close(writer)
    for pid in children:
        os.waitpid(pid, 0)
    return len(children), refused


class Drop(unittest.TestCase):
    def test_no_variant_keeps_a_capability_or_a_group(self) -> None:
        def body() -> Any:
            rows = dict(
                line.split(":\t") for line in Path("/proc/self/status").read_text().splitlines() if ":\t" in line
            )
            return [rows[name].strip() for name in ("CapEff", "CapPrm", "CapInh", "CapAmb", "NoNewPrivs")] + [
                os.getgroups()
            ]

        for level, plain in VARIANTS:
            with self.subTest(level=level, plain_user=plain):
                *caps, no_new_privs, groups = run(body, Setup(level=level, plain_user=plain))
                self.assertEqual({int(mask, 16) for mask in caps}, {0})
                self.assertEqual(no_new_privs, "1")
                self.assertLessEqual(set(groups), {os.getgid()} if level == "landlock" else set())

    def test_a_setuid_program_gains_nothing(self) -> None:
        program = Path("/usr/bin/su")
        if not program.exists() or not program.stat().st_mode & 0o4000:
            self.skipTest("no setuid program at /usr/bin/su")

        def body() -> Any:
            pid = os.fork()
            if pid == 0:
                os.dup2(os.open(os.devnull, os.O_RDWR), 2)
                os.execv("/usr/bin/su", ["su", "-c", "id -u > uid"])
            os.waitpid(pid, 0)
            return Path("uid").exists()

        for level, plain in VARIANTS:
            if level == "landlock" and not plain:
                continue  # uid 0 without capabilities needs no setuid to be uid 0.
            with self.subTest(level=level, plain_user=plain):
                self.assertFalse(run(body, Setup(level=level, plain_user=plain)))

    @unittest.skipIf(missing("namespaces"), missing("namespaces") or "")
    def test_the_agent_is_the_policys_user(self) -> None:
        found = run(lambda: [os.getresuid(), os.getresgid(), os.stat(".").st_uid])
        self.assertEqual(found, [[1000] * 3, [1000] * 3, 1000])

    @unittest.skipIf(missing("namespaces"), missing("namespaces") or "")
    def test_a_fork_bomb_ends_at_the_episodes_limit(self) -> None:
        limits = Limits(1024, 1 << 20, processes=PROCESSES)
        for plain in (False, True) if IS_ROOT else (False,):
            with self.subTest(plain_user=plain):
                count, refused = run(lambda: fork_until_refused(200), Setup(plain_user=plain, limits=limits))
                self.assertEqual(refused, "BlockingIOError")
                self.assertLess(count, PROCESSES)
                self.assertGreater(count, PROCESSES // 2)

    @unittest.skipIf(missing("namespaces"), missing("namespaces") or "")
    def test_threads_count_too(self) -> None:
        def body() -> int:
            stop = threading.Event()
            started = 0
            try:
                while started < 200:
                    threading.Thread(target=stop.wait, daemon=True).start()
                    started += 1
            except RuntimeError:
                stop.set()
            return started

        self.assertLess(run(body, Setup(limits=Limits(1024, 1 << 20, processes=PROCESSES))), PROCESSES)

    @unittest.skipIf(missing("namespaces"), missing("namespaces") or "")
    def test_a_bomb_in_one_episode_leaves_another_its_processes(self) -> None:
        for plain in (False, True) if IS_ROOT else (False,):
            with self.subTest(plain_user=plain):
                self.assertEqual(forks_beside_a_bomb(plain, PROCESSES // 2), PROCESSES // 2)


class ConfineInit(unittest.TestCase):
    @unittest.skipUnless(IS_ROOT, "needs root, to signal another uid")
    def test_only_signalling_is_left(self) -> None:
        def body() -> Any:
            child = os.fork()
            if child == 0:
                os.setresuid(65534, 65534, 65534)
                while True:
                    signal.pause()
            confine_init()
            try:
                os.setresuid(1, 1, 1)
                kept_uid = False
            except PermissionError:
                kept_uid = True
            os.kill(child, signal.SIGKILL)
            return [kept_uid, os.WTERMSIG(os.waitpid(child, 0)[1])]

        self.assertEqual(in_child(body), [True, signal.SIGKILL])


def forks_beside_a_bomb(plain_user: bool, wanted: int) -> int:
    """How many of `wanted` processes an episode gets while another is at its limit."""
    full, full_writer = os.pipe()
    release, release_writer = os.pipe()

    def hold() -> None:
        os.write(full_writer, b"x")
        os.read(release, 1)

    bomb = Setup(plain_user=plain_user, limits=Limits(1024, 1 << 20, processes=PROCESSES), slot=1)
    bomber = os.fork()
    if bomber == 0:
        try:
            run(lambda: fork_until_refused(200, hold), bomb)
        finally:
            os._exit(0)
    os.close(full_writer)
    count = 0
    if os.read(full, 1) == b"x":
        count, _ = run(lambda: fork_until_refused(wanted), replace(bomb, slot=2))
    os.write(release_writer, b"x")
    os.waitpid(bomber, 0)
    for fd in (full, release, release_writer):
        os.close(fd)
    return count


class PlanIdentity(unittest.TestCase):
    @unittest.skipUnless(IS_ROOT, "needs root")
    def test_root_gives_each_slot_its_own_uid(self) -> None:
        one, two = (
            plan_identity(POLICY.identity, slot, ["/usr"], private_root=True, user_namespace=True) for slot in (1, 2)
        )
        self.assertNotEqual(one.uid, two.uid)
        self.assertTrue(one.own_uid)
        self.assertGreater(one.uid, 65535)

    @unittest.skipUnless(IS_ROOT, "needs root")
    def test_python_out_of_reach_keeps_the_uid_without_a_private_root(self) -> None:
        with tempfile.TemporaryDirectory() as closed:  # made with mode 0700
            shared = plan_identity(POLICY.identity, 1, [closed], private_root=False, user_namespace=True)
            private = plan_identity(POLICY.identity, 1, [closed], private_root=True, user_namespace=True)
        self.assertEqual((shared.own_uid, shared.uid), (False, 0))
        self.assertTrue(private.own_uid)

    @unittest.skipUnless(IS_ROOT, "needs root, to give up root")
    def test_a_plain_user_keeps_its_uid(self) -> None:
        def body() -> Any:
            os.setresgid(65534, 65534, 65534)
            os.setresuid(65534, 65534, 65534)
            identity = plan_identity(POLICY.identity, 1, [], private_root=False, user_namespace=True)
            return [identity.uid, identity.own_uid, identity.user_namespace]

        self.assertEqual(in_child(body), [65534, False, False])
