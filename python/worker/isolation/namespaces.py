"""The namespaces of one episode, and how the zygote makes a child in them."""

import errno
import os
import struct

from . import syscalls as sc

#: Unshared by the episode's init; the pid namespace is made by `PidNamespaceForker`.
EPISODE_NAMESPACES = sc.CLONE_NEWNS | sc.CLONE_NEWIPC | sc.CLONE_NEWUTS | sc.CLONE_NEWNET


class PidNamespaceForker:
    """Forks children that are process 1 of a new pid namespace.

    A process that unshared its pid namespace must return to its own before it
    can unshare again. Real root may; root of an unprivileged user namespace
    may not, because its own pid namespace belongs to the host. It forks twice
    instead, and becomes a subreaper so that the grandchild is its to wait for.
    """

    def __init__(self) -> None:
        """Look which way works; call it in the zygote, after `enter_zygote_userns`.

        Raises:
            OSError: For a reason other than missing rights.
        """
        self._own = os.open("/proc/self/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        try:
            sc.setns(self._own, sc.CLONE_NEWPID)
            self.returns = True
        except PermissionError:
            self.returns = False
            sc.set_subreaper()

    @property
    def fd(self) -> int:
        """The descriptor this object holds; a child closes it with the others."""
        return self._own

    def fork(self) -> int:
        """Fork.

        Returns:
            The child's pid in the caller's numbering; 0 in the child.

        Raises:
            OSError: The namespace or the child could not be made; the caller
                keeps working in its own namespace.
        """
        return self._fork_and_return() if self.returns else self._fork_twice()

    def _fork_and_return(self) -> int:
        sc.unshare(sc.CLONE_NEWPID)
        try:
            pid = os.fork()
        except OSError:
            sc.setns(self._own, sc.CLONE_NEWPID)
            raise
        if pid != 0:
            sc.setns(self._own, sc.CLONE_NEWPID)
        return pid

    def _fork_twice(self) -> int:
        reader, writer = os.pipe()
        try:
            middle = os.fork()
        except OSError:
            os.close(reader)
            os.close(writer)
            raise
        if middle == 0:
            result = struct.pack("=ii", 0, errno.EIO)
            try:
                sc.unshare(sc.CLONE_NEWPID)
                pid = os.fork()
                if pid == 0:
                    os.close(reader)
                    os.close(writer)
                    return 0
                result = struct.pack("=ii", pid, 0)
            except OSError as error:
                result = struct.pack("=ii", 0, error.errno or errno.EIO)
            os.write(writer, result)
            os._exit(0)
        os.close(writer)
        answer = os.read(reader, 8)
        os.close(reader)
        os.waitpid(middle, 0)
        child: int
        child, code = struct.unpack("=ii", answer) if len(answer) == 8 else (0, errno.EIO)
        if child == 0:
            raise OSError(code, f"pid namespace: {os.strerror(code)}")
        return child
