"""Reading and writing the kernel's small files in as few operations as can be.

A freshly forked worker pays a page copy for each part of the interpreter it
touches; `pathlib` touches many.
"""

import os

_READ_BYTES = 1 << 16


def read_file(path: str | os.PathLike[str]) -> str:
    """The text of a file of /proc, /sys or cgroupfs, up to 64 KiB."""
    fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(fd, _READ_BYTES).decode("utf-8", "replace")
    finally:
        os.close(fd)


def write_file(path: str | os.PathLike[str], value: int | str) -> None:
    """Write a value in one call to a file that exists.

    Raises:
        OSError: The kernel refused it; the message names file and value.
    """
    # O_CREAT would turn a misspelt control file into EACCES, hiding the reason.
    fd = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
    try:
        os.write(fd, str(value).encode())
    except OSError as error:
        raise OSError(error.errno, f"writing {value} to {os.fspath(path)}: {error.strerror}") from error
    finally:
        os.close(fd)
