import os
import pickle
import unittest

from worker.isolation.value_sharing import CopiedDescriptor


class CopiedDescriptorTest(unittest.TestCase):
    def test_the_receiver_gets_a_copy(self) -> None:
        fd = os.memfd_create("sender")
        self.addCleanup(os.close, fd)
        os.write(fd, b"contents")
        received = pickle.loads(pickle.dumps(CopiedDescriptor(fd))).detach()
        self.addCleanup(os.close, received)
        os.pwrite(fd, b"CHANGED!", 0)
        self.assertEqual(os.read(received, 100), b"contents")

    def test_the_sender_keeps_its_position(self) -> None:
        fd = os.memfd_create("sender")
        self.addCleanup(os.close, fd)
        os.write(fd, b"contents")
        CopiedDescriptor(fd)
        self.assertEqual(os.lseek(fd, 0, os.SEEK_CUR), 8)

    def test_a_pipe_is_refused_with_the_reason(self) -> None:
        reader, writer = os.pipe()
        self.addCleanup(os.close, reader)
        self.addCleanup(os.close, writer)
        with self.assertRaisesRegex(OSError, "only memory can be sent"):
            CopiedDescriptor(reader)
