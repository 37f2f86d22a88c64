import errno
import os
import socket
import subprocess
import tempfile
import unittest
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

from worker.isolation.policy import Quotas
from worker.isolation.root_plan import plan_root

from .confined import POLICY, Lost, Setup, run
from .hosts import IS_ROOT, missing

MIB = 1 << 20
#: Where the work folder lies unless Python does.
FIRST = POLICY.private_root.work_candidates[0]
QUOTAS = Quotas(work_and_tmp_bytes=4 * MIB, work_and_tmp_inodes=64, shm_bytes=2 * MIB, shm_inodes=32)
USERS = (False, True) if IS_ROOT else (False,)


def fill(folder: str, step: int = 256 * 1024) -> tuple[int, str]:
    """Write until refused: bytes written and the errno's name."""
    written = 0
    with open(Path(folder, "fill"), "wb", buffering=0) as file:
        try:
            while True:
                written += file.write(b"x" * step)
        except OSError as error:
            return written, errno.errorcode[error.errno or 0]


def litter(folder: str) -> tuple[int, str]:
    """Make files until refused: how many and the errno's name."""
    count = 0
    try:
        while True:
            Path(folder, f"file{count}").touch()
            count += 1
    except OSError as error:
        return count, errno.errorcode[error.errno or 0]


@unittest.skipIf(missing("namespaces"), missing("namespaces") or "")
class PrivateRoot(unittest.TestCase):
    def each_user(self, body: Callable[[], Any], check: Callable[[Any], None], **setup: Any) -> None:
        for plain_user in USERS:
            with self.subTest(plain_user=plain_user):
                check(run(body, Setup(plain_user=plain_user, quotas=QUOTAS, **setup)))

    def test_work_and_tmp_share_one_size(self) -> None:
        def body() -> Any:
            return [*fill("."), *fill("/tmp")]

        def check(found: Any) -> None:
            first, first_errno, second, second_errno = found
            self.assertEqual((first_errno, second_errno), ("ENOSPC", "ENOSPC"))
            self.assertLessEqual(first + second, QUOTAS.work_and_tmp_bytes)
            self.assertGreater(first, QUOTAS.work_and_tmp_bytes // 2)

        self.each_user(body, check)

    def test_work_and_tmp_share_one_inode_count(self) -> None:
        def body() -> Any:
            return [*litter("."), *litter("/tmp")]

        def check(found: Any) -> None:
            first, first_errno, second, second_errno = found
            self.assertEqual((first_errno, second_errno, second), ("ENOSPC", "ENOSPC", 0))
            self.assertLess(first, QUOTAS.work_and_tmp_inodes)

        self.each_user(body, check)

    def test_shm_has_its_own_limits(self) -> None:
        def check(found: Any) -> None:
            self.assertEqual(found[1], "ENOSPC")
            self.assertLessEqual(found[0], QUOTAS.shm_bytes)

        self.each_user(lambda: fill("/dev/shm"), check)
        self.each_user(lambda: litter("/dev/shm"), lambda found: self.assertLess(found[0], QUOTAS.shm_inodes))

    def test_nothing_else_is_writable(self) -> None:
        def body() -> list[str]:
            writable = []
            for folder, below, _ in os.walk("/"):
                if folder.startswith(("/proc", "/tmp", "/dev/shm", os.getcwd())) or folder.count("/") > 2:
                    below.clear()
                    continue
                try:
                    Path(folder, "probe").touch()
                    writable.append(folder)
                except OSError:
                    continue
            return writable

        self.each_user(body, lambda found: self.assertEqual(found, []), without=frozenset({"landlock"}))

    def test_the_host_is_not_there(self) -> None:
        self.assertTrue(os.path.exists("/var"))

        def body() -> list[str]:
            return [
                path for path in ("/var", "/home", "/run", "/boot", "/etc/shadow", "/etc/ssl") if os.path.lexists(path)
            ]

        self.each_user(body, lambda found: self.assertEqual(found, []))

    def test_every_mount_is_nosuid_and_host_mounts_are_read_only(self) -> None:
        def body() -> list[list[str]]:
            rows = [line.split() for line in Path("/proc/self/mountinfo").read_text().splitlines()]
            return [[row[4], row[5], row[row.index("-") + 1]] for row in rows]

        def check(found: Any) -> None:
            for place, options, kind in found:
                with self.subTest(place=place):
                    self.assertIn("nosuid", options.split(","))
                    if kind not in ("tmpfs", "proc"):
                        self.assertIn("ro", options.split(","))
                    if not place.startswith("/dev/"):
                        self.assertIn("nodev", options.split(","))
            self.assertIn("ro", next(options for place, options, _ in found if place == "/").split(","))

        self.each_user(body, check)

    def test_devices_work_and_are_few(self) -> None:
        def body() -> Any:
            Path("/dev/null").write_text("gone")
            with open("/dev/zero", "rb") as zero, open("/dev/urandom", "rb") as random:
                return [zero.read(2).hex(), len(random.read(4)), sorted(os.listdir("/dev"))]

        expected = ["fd", "full", "null", "random", "shm", "stderr", "stdin", "stdout", "urandom", "zero"]
        self.each_user(body, lambda found: self.assertEqual(found, ["0000", 4, expected]))

    def test_only_the_episode_is_in_proc(self) -> None:
        def body() -> Any:
            child = subprocess.run(["/bin/cat", "/proc/self/comm"], capture_output=True, text=True).stdout
            pids = {int(name) for name in os.listdir("/proc") if name.isdigit()}
            return [child, sorted(pids - {1, os.getpid()}), os.getppid()]

        self.each_user(body, lambda found: self.assertEqual(found, ["cat\n", [], 1]))

    def test_names_are_the_policys(self) -> None:
        def body() -> Any:
            return [socket.gethostname(), subprocess.run(["id", "-un"], capture_output=True, text=True).stdout]

        self.each_user(body, lambda found: self.assertEqual(found, ["forkyard", "agent\n"]))

    def test_python_below_tmp_is_shown_read_only(self) -> None:
        with tempfile.TemporaryDirectory(dir="/tmp") as folder:
            os.chmod(folder, 0o755)
            Path(folder, "python").mkdir()
            Path(folder, "python", "module.py").write_text("x = 1")

            def body() -> Any:
                shown = Path(folder, "python", "module.py")
                Path("/tmp/own").write_text("y")
                try:
                    shown.write_text("x = 2")
                except OSError:
                    return shown.read_text()

            self.each_user(
                body,
                lambda found: self.assertEqual(found, "x = 1"),
                extra_paths=(f"{folder}/python",),
                without=frozenset({"landlock"}),
            )

    def test_a_missing_right_is_named(self) -> None:
        plan_with_bad_option = replace(POLICY.private_root, proc_options="hidepid=banana")
        original = POLICY.private_root
        object.__setattr__(POLICY, "private_root", plan_with_bad_option)
        self.addCleanup(object.__setattr__, POLICY, "private_root", original)
        with self.assertRaisesRegex(Lost, "mount proc on proc: Invalid argument"):
            run(lambda: None)


class PlanRoot(unittest.TestCase):
    def plan(self, *paths: str) -> Any:
        return plan_root(POLICY.private_root, POLICY.identity, QUOTAS, paths)

    def test_work_moves_aside_for_python(self) -> None:
        self.assertEqual(self.plan("/opt/python").work, "/work")
        self.assertEqual(self.plan(f"{FIRST}/project/.venv").work, "/workspace")
        self.assertEqual(self.plan(f"{FIRST}/a", "/workspace/b").work, "/srv/work")

    def test_no_place_for_work_is_an_error(self) -> None:
        with self.assertRaisesRegex(ValueError, "add a work candidate"):
            self.plan(f"{FIRST}/a", "/workspace/b", "/srv/work/c")

    def test_paths_below_system_folders_need_no_mount(self) -> None:
        self.assertEqual(
            self.plan("/usr/local/lib/python3", "/opt/python", "/opt/python/lib").python_paths, ("/opt/python",)
        )

    def test_staging_hides_no_source(self) -> None:
        self.assertNotEqual(self.plan("/mnt/python").staging, "/mnt")
