import ctypes
import errno
import mmap
import os
import signal
import socket
import subprocess
import threading
import unittest
from collections.abc import Callable
from functools import partial
from typing import Any

from worker.isolation import bpf, seccomp
from worker.isolation import syscalls as sc
from worker.isolation.policy import load_policy
from worker.isolation.syscall_numbers import AUDIT_ARCH, MACHINE, SYSCALLS, number

from .bpf_machine import evaluate
from .confined import Lost, in_child, signal_of

POLICY = load_policy().seccomp
PRIVATE = seccomp.SeccompContext(ipc_namespace=True, private_root=True, own_uid=True)
SHARED = seccomp.SeccompContext(ipc_namespace=False, private_root=False, own_uid=False)


def under(context: seccomp.SeccompContext, body: Callable[[], Any]) -> Any:
    def confined() -> Any:
        sc.set_no_new_privs()
        seccomp.install(seccomp.compile_filter(POLICY, context))
        return body()

    return in_child(confined)


def errno_of(attempt: Callable[[], Any]) -> int:
    try:
        attempt()
    except OSError as error:
        return error.errno or 0
    return 0


class InstalledFilter(unittest.TestCase):
    def assert_errno(self, context: seccomp.SeccompContext, expected: str, attempt: Callable[[], Any]) -> None:
        found = under(context, lambda: errno_of(attempt))
        self.assertEqual(errno.errorcode.get(found, found), expected)

    def test_namespaces_and_mounts_are_eperm(self) -> None:
        for kind in (sc.CLONE_NEWUSER, sc.CLONE_NEWNS, sc.CLONE_NEWPID, sc.CLONE_NEWCGROUP):
            self.assert_errno(PRIVATE, "EPERM", partial(sc.unshare, kind))
        self.assert_errno(PRIVATE, "EPERM", partial(sc.mount, "none", "/tmp", "tmpfs", 0))
        self.assert_errno(PRIVATE, "EPERM", partial(sc.raw, "fsopen", b"tmpfs", 0))
        self.assert_errno(PRIVATE, "EPERM", partial(os.chroot, "/"))

    def test_clone_with_a_namespace_flag_is_eperm(self) -> None:
        self.assert_errno(PRIVATE, "EPERM", partial(sc.raw, "clone", sc.CLONE_NEWUSER | signal.SIGCHLD, 0, 0, 0, 0))

    def test_clone3_is_enosys(self) -> None:
        self.assert_errno(PRIVATE, "ENOSYS", partial(sc.raw, "clone3", None, 0))

    def test_io_uring_is_enosys(self) -> None:
        self.assert_errno(PRIVATE, "ENOSYS", partial(sc.raw, "io_uring_setup", 1, None))

    def test_other_processes_are_eperm(self) -> None:
        self.assert_errno(PRIVATE, "EPERM", partial(sc.raw, "ptrace", 0, 0, 0, 0))
        self.assert_errno(PRIVATE, "EPERM", partial(sc.raw, "process_vm_readv", os.getpid(), None, 0, None, 0, 0))
        self.assert_errno(PRIVATE, "EPERM", partial(sc.raw, "prlimit64", os.getppid(), 7, None, None))

    def test_sockets_other_than_unix_are_eafnosupport(self) -> None:
        for family in (socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK, socket.AF_PACKET, socket.AF_VSOCK):
            for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM, socket.SOCK_RAW):
                self.assert_errno(PRIVATE, "EAFNOSUPPORT", partial(sc.raw, "socket", family, kind, 0))

    def test_terminal_injection_is_eperm(self) -> None:
        for request in (0x5412, 0x541C):
            self.assert_errno(PRIVATE, "EPERM", partial(sc.raw, "ioctl", 0, request, 0))

    def test_high_bits_of_an_argument_hide_nothing(self) -> None:
        # The kernel reads the request as 32 bits; the filter must too.
        self.assert_errno(PRIVATE, "EPERM", partial(sc.raw, "ioctl", 0, 0x1_0000_5412, 0))
        self.assert_errno(PRIVATE, "EAFNOSUPPORT", partial(sc.raw, "socket", 0x1_0000_0002, 1, 0))

    def test_prctl_options_that_open_doors_are_eperm(self) -> None:
        for option in (sc.PR_SET_DUMPABLE, sc.PR_SET_SECUREBITS, 35, 0x59616D61):
            self.assert_errno(PRIVATE, "EPERM", partial(sc.prctl, option, 1))

    def test_calls_newer_than_the_policy_are_enosys(self) -> None:
        libc = ctypes.CDLL(None, use_errno=True)

        def newer() -> list[int]:
            return [int(libc.syscall(ctypes.c_long(POLICY.newest_syscall + 1))), ctypes.get_errno()]

        self.assertEqual(under(PRIVATE, newer), [-1, errno.ENOSYS])

    def test_named_sockets_are_eperm_without_a_private_root(self) -> None:
        self.assert_errno(SHARED, "EPERM", partial(socket.socket, socket.AF_UNIX))
        self.assert_errno(SHARED, "EAFNOSUPPORT", partial(sc.raw, "socket", 2, 1, 0))
        self.assert_errno(SHARED, "ESOCKTNOSUPPORT", partial(socket.socketpair, socket.AF_UNIX, socket.SOCK_DGRAM))

    def test_folders_cannot_be_watched_without_a_private_root(self) -> None:
        self.assert_errno(SHARED, "EPERM", partial(sc.raw, "inotify_add_watch", 0, b"/dev/shm", 0x100))
        self.assert_errno(PRIVATE, "EINVAL", partial(sc.raw, "inotify_add_watch", 0, b"/dev/shm", 0x100))

    def test_socket_pairs_work_without_a_private_root(self) -> None:
        def talk() -> str:
            ours, theirs = socket.socketpair()
            with ours, theirs:
                ours.sendall(b"x")
                return theirs.recv(1).decode()

        self.assertEqual(under(SHARED, talk), "x")

    def test_metadata_is_eperm_for_a_shared_uid(self) -> None:
        path = f"/tmp/forkyard-test-{os.getpid()}"
        with open(path, "w"):
            self.addCleanup(os.unlink, path)
        self.assert_errno(SHARED, "EPERM", partial(os.chmod, path, 0o600))
        self.assert_errno(SHARED, "EPERM", partial(os.chown, path, -1, -1))
        self.assert_errno(SHARED, "EPERM", partial(os.utime, path))
        self.assert_errno(SHARED, "ENOTSUP", partial(os.setxattr, path, "user.x", b"1"))
        self.assertEqual(under(PRIVATE, lambda: errno_of(partial(os.chmod, path, 0o600))), 0)

    def test_other_processes_keep_their_scheduling_for_a_shared_uid(self) -> None:
        service = os.getpid()
        self.assert_errno(SHARED, "EPERM", partial(os.setpriority, os.PRIO_PROCESS, service, 19))
        self.assert_errno(SHARED, "EPERM", partial(os.setpriority, os.PRIO_USER, 0, 19))
        self.assert_errno(SHARED, "EPERM", partial(os.sched_setaffinity, service, {0}))
        self.assertEqual(under(SHARED, lambda: errno_of(partial(os.sched_setaffinity, 0, {0}))), 0)

    def test_system_v_ipc_needs_a_namespace(self) -> None:
        self.assert_errno(SHARED, "EPERM", partial(sc.raw, "shmget", 0, 4096, 0o600))
        self.assert_errno(SHARED, "EPERM", partial(sc.raw, "mq_open", b"x", 0))
        self.assert_errno(PRIVATE, "ENOENT", partial(sc.raw, "shmget", 0x4652_4B59, 0, 0))

    def test_protected_pids_cannot_be_signalled(self) -> None:
        service = os.getpid()
        context = seccomp.SeccompContext(False, False, False, (service,))
        for target in (service, -service, -1):
            self.assert_errno(context, "EPERM", partial(os.kill, target, 0))
        self.assert_errno(context, "EPERM", partial(sc.raw, "tgkill", service, service, 0))
        self.assert_errno(context, "EPERM", partial(sc.raw, "tkill", service, 0))
        self.assert_errno(context, "EPERM", partial(sc.raw, "pidfd_send_signal", 0, 0, None, 0))
        self.assertEqual(under(context, lambda: errno_of(lambda: os.kill(os.getpid(), 0))), 0)

    def test_ordinary_work_is_allowed(self) -> None:
        def work() -> list[Any]:
            results: list[Any] = []
            thread = threading.Thread(target=lambda: results.append("thread"))
            thread.start()
            thread.join()
            results.append(subprocess.run(["/bin/echo", "child"], capture_output=True, text=True).stdout)
            pid = os.fork()
            if pid == 0:
                os._exit(7)
            results.append(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
            with mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC):
                results.append("executable memory")
            os.close(os.memfd_create("x"))
            results.append(len(os.sched_getaffinity(0)) > 0)
            return results

        for context in (PRIVATE, SHARED):
            self.assertEqual(under(context, work), ["thread", "child\n", 7, "executable memory", True])

    @unittest.skipUnless(MACHINE == "x86_64", "x32 and i386 calls exist on x86_64 only")
    def test_foreign_calls_kill_the_process(self) -> None:
        libc = ctypes.CDLL(None)

        def i386_getpid() -> int:
            with mmap.mmap(-1, 4096, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC) as memory:
                memory.write(b"\xb8\x14\x00\x00\x00\xcd\x80\xc3")  # mov eax, 20; int 0x80; ret
                address = ctypes.addressof(ctypes.c_char.from_buffer(memory))
                return int(ctypes.CFUNCTYPE(ctypes.c_int)(address)())

        for body in (i386_getpid, lambda: libc.syscall(ctypes.c_long(0x4000_0000 | 39))):
            with self.assertRaises(Lost) as caught:
                under(PRIVATE, body)
            self.assertIn(signal_of(caught.exception), (signal.SIGSYS, signal.SIGSEGV))


class CompiledFilter(unittest.TestCase):
    """What the program answers on each machine, read by an interpreter."""

    def outcome(self, context: seccomp.SeccompContext, machine: str, name: str, *arguments: int) -> str:
        nr = number(name, machine)
        assert nr is not None
        program = seccomp.compile_filter(POLICY, context, machine)
        return self.word(evaluate(program, AUDIT_ARCH[machine], nr, arguments))

    def word(self, value: int) -> str:
        if value == bpf.RETURN_ALLOW:
            return "allow"
        if value == bpf.RETURN_KILL_PROCESS:
            return "kill"
        return errno.errorcode[value & 0xFFFF]

    def test_every_denied_call_answers_its_action(self) -> None:
        context = seccomp.SeccompContext(False, False, False, (4242,))
        for machine in AUDIT_ARCH:
            for rule in POLICY.calls:
                for name in rule.syscalls:
                    if number(name, machine) is not None:
                        # Domain 1 and so on: what no argument rule catches first.
                        with self.subTest(machine=machine, name=name):
                            self.assertEqual(self.outcome(context, machine, name, 1), rule.action)

    def test_every_argument_rule_answers_its_action(self) -> None:
        context = seccomp.SeccompContext(False, False, False, (4242,))
        hits = {"equals": 0, "any_bits": 0, "between": 0, "protected_pid": 4242}
        for machine in AUDIT_ARCH:
            for rule in POLICY.arguments:
                value = rule.values[0] if rule.test in hits and rule.values else hits.get(rule.test, 0x77)
                # Earlier rules of the same call must let the other arguments pass.
                passing = {"socketpair": [1, 1], "setpriority": [0, 0], "ioprio_set": [1, 0]}.get(rule.syscall, [0] * 3)
                arguments = [*passing, 0, 0][:3]
                arguments[rule.argument] = value
                with self.subTest(machine=machine, rule=rule.name, syscall=rule.syscall):
                    self.assertEqual(self.outcome(context, machine, rule.syscall, *arguments), rule.action)

    def test_conditions_leave_rules_out(self) -> None:
        for machine in AUDIT_ARCH:
            self.assertEqual(self.outcome(PRIVATE, machine, "socket", 1), "allow")
            self.assertEqual(self.outcome(PRIVATE, machine, "fchmod", 1), "allow")
            self.assertEqual(self.outcome(PRIVATE, machine, "shmget", 1), "allow")
            self.assertEqual(self.outcome(PRIVATE, machine, "kill", -1), "allow")

    def test_another_architecture_is_killed(self) -> None:
        for machine, other in (("x86_64", "aarch64"), ("aarch64", "x86_64")):
            program = seccomp.compile_filter(POLICY, PRIVATE, machine)
            self.assertEqual(self.word(evaluate(program, AUDIT_ARCH[other], 39)), "kill")

    def test_unlisted_calls_are_allowed(self) -> None:
        denied = {name for rule in POLICY.calls for name in rule.syscalls} | {rule.syscall for rule in POLICY.arguments}
        for machine in AUDIT_ARCH:
            program = seccomp.compile_filter(POLICY, SHARED, machine)
            numbers = {number(name, machine) for name in denied}
            for nr in range(POLICY.newest_syscall + 1):
                if nr not in numbers:
                    self.assertEqual(self.word(evaluate(program, AUDIT_ARCH[machine], nr)), "allow", nr)

    def test_the_table_names_no_number_twice(self) -> None:
        for column in (0, 1):
            numbers = [row[column] for row in SYSCALLS.values() if row[column] is not None]
            self.assertEqual(len(numbers), len(set(numbers)))
