import base64
import os
import socket
from pathlib import Path

from instruments.collect_files import collect_files

from .scenes import WorkFolderTest, report_of


class CollectFilesTest(WorkFolderTest):
    def collect(self, *names: str, file_bytes: int = 100, total_bytes: int = 1000) -> dict[str, dict[str, str]]:
        return report_of(collect_files, names=list(names), max_file_bytes=file_bytes, max_total_bytes=total_bytes)

    def test_files_come_back_whole(self) -> None:
        content = bytes(range(100))
        Path("a.bin").write_bytes(content)
        Path("empty").touch()
        report = self.collect("a.bin", "empty", "a.bin")
        self.assertEqual(report["refused"], {})
        self.assertEqual(
            {name: base64.b64decode(text) for name, text in report["files"].items()}, {"a.bin": content, "empty": b""}
        )

    def test_what_is_no_regular_file_is_refused_with_the_reason_and_without_waiting(self) -> None:
        Path("target").write_text("secret")
        os.symlink("target", "link")
        os.mkfifo("pipe")
        os.mkdir("folder")
        listener = socket.socket(socket.AF_UNIX)
        self.addCleanup(listener.close)
        listener.bind("socket")
        report = self.collect("link", "pipe", "folder", "socket", "gone")
        self.assertEqual(report["files"], {})
        self.assertEqual(
            report["refused"],
            {
                "link": "it is a symbolic link",
                "pipe": "it is not a regular file",
                "folder": "it is not a regular file",
                "socket": "it can not be read: No such device or address",
                "gone": "it is missing",
            },
        )

    def test_names_that_lead_elsewhere_are_refused(self) -> None:
        Path("inner").mkdir()
        Path("inner/file").touch()
        names = ["/etc/hostname", "inner/file", "..", ".", "", "a\0b"]
        report = self.collect(*names)
        self.assertEqual(set(report["refused"]), set(names))
        self.assertEqual(set(report["refused"].values()), {"it is not the name of a file in the work folder"})

    def test_sizes_are_bounded_one_by_one_and_together(self) -> None:
        for name, size in (("fits", 100), ("large", 101), ("second", 60), ("small", 40)):
            Path(name).write_bytes(bytes(size))
        with open("sparse", "wb") as file:
            file.truncate(1 << 40)
        report = self.collect("large", "sparse", "fits", "second", "small", total_bytes=150)
        self.assertEqual(set(report["files"]), {"fits", "small"})
        self.assertEqual(
            report["refused"],
            {
                "large": "it has more than 100 bytes",
                "sparse": "it has more than 100 bytes",
                "second": "it has 60 bytes, and 50 are left for all files together",
            },
        )

    def test_bad_arguments_are_named(self) -> None:
        with self.assertRaisesRegex(TypeError, "names: expected a list of texts, got str"):
            report_of(collect_files, names="a", max_file_bytes=1, max_total_bytes=1)
        with self.assertRaisesRegex(ValueError, "max_file_bytes: expected a number above 0, got 0"):
            report_of(collect_files, names=[], max_file_bytes=0, max_total_bytes=1)
