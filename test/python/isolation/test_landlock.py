import errno
import os
import signal
import socket
import tempfile
import unittest
from collections.abc import Callable
from pathlib import Path
from typing import Any

from worker.isolation import landlock
from worker.isolation import syscalls as sc
from worker.isolation.landlock import DEVICE, OWN, READ, SHARED_SHM, PathRule

from .confined import Lost, in_child
from .hosts import IS_ROOT

ABI = sc.landlock_abi()


def errno_of(attempt: Callable[[], Any]) -> str:
    try:
        attempt()
    except OSError as error:
        return errno.errorcode[error.errno or 0]
    return "allowed"


@unittest.skipIf(ABI == 0, "this kernel offers no Landlock")
class Restrict(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.own = Path(folder.name, "own")
        self.shown = Path(folder.name, "shown")
        self.hidden = Path(folder.name, "hidden")
        for path in (self.own, self.own / "sub", self.shown, self.hidden):
            path.mkdir()
        for path in (self.own, self.shown, self.hidden):
            (path / "file").write_text("text")

    def under(self, body: Callable[[], Any], *more: PathRule, abi: int = ABI) -> Any:
        rules = [PathRule(str(self.own), OWN), PathRule(str(self.shown), READ), *more]

        def confined() -> Any:
            sc.set_no_new_privs()
            landlock.restrict(rules, abi)
            return body()

        return in_child(confined)

    def test_a_read_rule_allows_reading_only(self) -> None:
        file = self.shown / "file"
        self.assertEqual(self.under(file.read_text), "text")
        for attempt in (
            lambda: file.write_text("x"),
            lambda: os.truncate(file, 0),
            file.unlink,
            lambda: (self.shown / "new").mkdir(),
            lambda: os.mkfifo(self.shown / "new"),
        ):
            self.assertEqual(self.under(lambda attempt=attempt: errno_of(attempt)), "EACCES")

    def test_no_rule_means_no_access(self) -> None:
        self.assertEqual(self.under(lambda: errno_of((self.hidden / "file").read_text)), "EACCES")
        self.assertEqual(self.under(lambda: errno_of(lambda: os.listdir(self.hidden))), "EACCES")

    def test_an_own_folder_allows_ordinary_work(self) -> None:
        def work() -> str:
            (self.own / "a").write_text("moved")
            os.rename(self.own / "a", self.own / "sub" / "b")
            os.link(self.own / "sub" / "b", self.own / "c")
            os.symlink("c", self.own / "d")
            os.mkfifo(self.own / "fifo")
            os.truncate(self.own / "c", 3)
            return (self.own / "d").read_text()

        self.assertEqual(self.under(work), "mov")

    def test_a_file_does_not_leave_its_rules(self) -> None:
        def steal() -> str:
            return errno_of(lambda: os.link(self.hidden / "file", self.own / "stolen"))

        self.assertIn(self.under(steal), ("EACCES", "EXDEV"))

    def test_a_missing_path_is_skipped_and_reported(self) -> None:
        def confined() -> Any:
            sc.set_no_new_privs()
            return landlock.restrict([PathRule("/no/such/place", READ)], ABI).skipped

        self.assertEqual(in_child(confined), ["/no/such/place"])

    def test_without_no_new_privs_it_raises(self) -> None:
        def unprepared() -> str:
            os.setresuid(65534, 65534, 65534)
            return errno_of(lambda: landlock.restrict([], ABI))

        if not IS_ROOT:
            self.skipTest("needs root, to give up root")
        self.assertEqual(in_child(unprepared), "EPERM")

    def test_a_rule_the_kernel_refuses_raises_with_its_path(self) -> None:
        with self.assertRaisesRegex(Lost, "Landlock rule for .*shown"):
            # No right at all is no rule.
            self.under(lambda: None, PathRule(str(self.shown), 0))

    def test_abi_zero_raises(self) -> None:
        with self.assertRaisesRegex(OSError, "no Landlock"):
            landlock.restrict([], 0)

    def test_shared_memory_is_used_by_name_and_not_listed(self) -> None:
        rule = PathRule(str(self.hidden), SHARED_SHM)

        def share() -> list[str]:
            (self.hidden / "new").write_text("x")
            (self.hidden / "new").unlink()
            return [errno_of(lambda: os.listdir(self.hidden)), (self.hidden / "file").read_text()]

        self.assertEqual(self.under(share, rule), ["EACCES", "text"])

    @unittest.skipIf(ABI < 4, f"Landlock ABI {ABI} knows no TCP")
    def test_tcp_is_denied(self) -> None:
        def connect() -> str:
            with socket.socket() as client:
                return errno_of(lambda: client.connect(("127.0.0.1", 1)))

        def bind() -> str:
            with socket.socket() as server:
                return errno_of(lambda: server.bind(("127.0.0.1", 0)))

        self.assertEqual(self.under(connect), "EACCES")
        self.assertEqual(self.under(bind), "EACCES")

    @unittest.skipIf(ABI < 5, f"Landlock ABI {ABI} knows no device ioctl")
    def test_device_ioctls_are_denied(self) -> None:
        def send() -> str:
            fd = os.open("/dev/null", os.O_RDWR)
            return errno_of(lambda: sc.raw("ioctl", fd, 0x5401, 0))

        self.assertEqual(self.under(send, PathRule("/dev/null", DEVICE)), "EACCES")

    @unittest.skipIf(ABI < 6, f"Landlock ABI {ABI} scopes no signals and abstract sockets")
    def test_signals_and_abstract_sockets_stay_inside(self) -> None:
        server = socket.socket(socket.AF_UNIX)
        self.addCleanup(server.close)
        name = f"\0forkyard-test-{os.getpid()}"
        server.bind(name)
        server.listen()
        service = os.getpid()

        def reach_out() -> list[str]:
            with socket.socket(socket.AF_UNIX) as client:
                return [errno_of(lambda: os.kill(service, 0)), errno_of(lambda: client.connect(name))]

        def reach_own_child() -> int:
            pid = os.fork()
            if pid == 0:
                signal.pause()
            os.kill(pid, signal.SIGKILL)
            return os.WTERMSIG(os.waitpid(pid, 0)[1])

        self.assertEqual(self.under(reach_out), ["EPERM", "EPERM"])
        self.assertEqual(self.under(reach_own_child), signal.SIGKILL)

    def test_every_older_abi_can_be_asked_for(self) -> None:
        for abi in range(1, ABI + 1):
            self.assertEqual(self.under(lambda: errno_of((self.hidden / "file").read_text), abi=abi), "EACCES", abi)


class HandledRights(unittest.TestCase):
    def test_each_abi_adds_its_rights(self) -> None:
        self.assertEqual(landlock.handled_fs(1), 0x1FFF)
        self.assertEqual(landlock.handled_fs(2), 0x3FFF)
        self.assertEqual(landlock.handled_fs(3), 0x7FFF)
        self.assertEqual(landlock.handled_fs(4), 0x7FFF)
        self.assertEqual(landlock.handled_fs(7), 0xFFFF)
        self.assertEqual(landlock.handled_fs(9), 0x1FFFF)
