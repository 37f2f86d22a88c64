import errno
import mmap
import os
import resource
import threading
import unittest
from typing import Any

from worker.isolation import rlimits
from worker.isolation.rlimits import Limits

from .confined import POLICY, in_child

MIB = 1 << 20


class ApplyRlimits(unittest.TestCase):
    def under(self, limits: Limits, body: Any) -> Any:
        def limited() -> Any:
            rlimits.apply_rlimits(limits, POLICY.rlimits)
            return body()

        return in_child(limited)

    def test_open_files_end_in_emfile(self) -> None:
        def body() -> Any:
            opened = []
            try:
                while True:
                    opened.append(os.open(os.devnull, os.O_RDONLY))
            except OSError as error:
                return [max(opened), errno.errorcode[error.errno or 0]]

        self.assertEqual(self.under(Limits(open_files=40, file_bytes=MIB), body), [39, "EMFILE"])

    def test_a_long_file_is_efbig_and_no_signal(self) -> None:
        def body() -> Any:
            fd = os.memfd_create("long")
            try:
                os.ftruncate(fd, 2 * MIB)
            except OSError as error:
                return errno.errorcode[error.errno or 0]

        self.assertEqual(self.under(Limits(open_files=64, file_bytes=MIB), body), "EFBIG")

    def test_core_dumps_are_off_for_good(self) -> None:
        found = self.under(Limits(64, MIB), lambda: resource.getrlimit(resource.RLIMIT_CORE))
        self.assertEqual(found, [0, 0])

    def test_data_ends_in_memory_error_and_leaves_room_for_the_zygotes_own(self) -> None:
        limits = Limits(64, MIB, data_bytes=rlimits.private_bytes() + 64 * MIB)

        def body() -> Any:
            small = bytearray(16 * MIB)
            try:
                bytearray(256 * MIB)
            except MemoryError:
                return len(small)

        self.assertEqual(self.under(limits, body), 16 * MIB)

    def test_address_space_stays_open(self) -> None:
        def body() -> Any:
            # What torch's allocators do: reserve much, use little.
            flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x4000  # MAP_NORESERVE
            with mmap.mmap(-1, 1 << 33, flags=flags, prot=mmap.PROT_READ):
                return resource.getrlimit(resource.RLIMIT_AS)[0]

        self.assertEqual(self.under(Limits(64, MIB, data_bytes=1 << 30), body), resource.RLIM_INFINITY)

    def test_cpu_time_kills(self) -> None:
        with self.assertRaisesRegex(Exception, "wait status"):
            self.under(Limits(64, MIB, cpu_s=1), lambda: [None for _ in iter(int, 1)])

    def test_a_lower_hard_limit_stays(self) -> None:
        def body() -> Any:
            resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))
            rlimits.apply_rlimits(Limits(open_files=4096, file_bytes=MIB), POLICY.rlimits)
            return resource.getrlimit(resource.RLIMIT_NOFILE)

        self.assertEqual(in_child(body), [32, 32])

    def test_threads_still_start(self) -> None:
        def body() -> Any:
            thread = threading.Thread(target=lambda: None)
            thread.start()
            thread.join()
            return resource.getrlimit(resource.RLIMIT_STACK)[0]

        self.assertLessEqual(self.under(Limits(64, MIB), body), POLICY.rlimits.stack_bytes)
