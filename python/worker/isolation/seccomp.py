"""The system call filter: the policy's deny-list compiled to BPF.

Default is allow: CPython, glibc and torch use new calls with every release.
The first instructions refuse foreign architectures, so that no call reaches
the list under another number, and answer ENOSYS to calls newer than the list.
Only the low 32 bits of an argument are compared, because the kernel itself
reads each of the filtered arguments as a 32-bit value.
"""

import errno
from collections.abc import Sequence
from dataclasses import dataclass

from . import bpf, syscalls
from .policy import ArgumentRule, CallRule, Condition, SeccompPolicy
from .syscall_numbers import AUDIT_ARCH, MACHINE, number

_X32_BIT = 0x4000_0000
_TYPE_BITS = 0xF  # SOCK_* without SOCK_CLOEXEC and SOCK_NONBLOCK


@dataclass(frozen=True, slots=True)
class SeccompContext:
    """What the other layers give, which decides the rules the filter must add.

    Attributes:
        ipc_namespace: The worker has an IPC namespace of its own.
        private_root: The worker has a mount namespace that shows no socket and
            no writable file of the host, and a pid namespace.
        own_uid: No process or file outside the episode belongs to the worker's uid.
        protected_pids: Processes and threads of the service that the worker
            could signal; empty where a pid namespace or Landlock prevents it.
    """

    ipc_namespace: bool
    private_root: bool
    own_uid: bool
    protected_pids: tuple[int, ...] = ()

    def applies(self, condition: Condition) -> bool:
        """Whether a rule under `condition` belongs into this filter."""
        return {
            "always": True,
            "no_ipc_namespace": not self.ipc_namespace,
            "no_private_root": not self.private_root,
            "shared_uid": not self.private_root and not self.own_uid,
            "protected_pids": bool(self.protected_pids),
        }[condition]


def compile_filter(policy: SeccompPolicy, context: SeccompContext, machine: str = MACHINE) -> bytes:
    """Compile the policy for one machine; pure, so a zygote does it once.

    Raises:
        ValueError: The machine is unknown, an action is no errno name, or the
            program is longer than the kernel accepts.
        KeyError: The policy names an unknown call.
    """
    if machine not in AUDIT_ARCH:
        raise ValueError(f"no system call table for {machine}")
    program = [
        bpf.load(bpf.OFFSET_ARCH),
        bpf.instruction(bpf.JUMP_EQUAL, AUDIT_ARCH[machine], 1, 0),
        bpf.give(bpf.RETURN_KILL_PROCESS),
        bpf.load(bpf.OFFSET_NUMBER),
    ]
    if machine == "x86_64":
        program += [bpf.instruction(bpf.JUMP_GREATER_EQUAL, _X32_BIT, 0, 1), bpf.give(bpf.RETURN_KILL_PROCESS)]
    program += [bpf.instruction(bpf.JUMP_GREATER, policy.newest_syscall, 0, 1), bpf.give_errno(errno.ENOSYS)]

    denied: dict[int, int] = {}
    for call_rule in policy.calls:
        if context.applies(call_rule.when):
            denied.update(dict.fromkeys(_numbers(call_rule, machine), _errno(call_rule.action)))
    checked: dict[int, list[ArgumentRule]] = {}
    for rule in policy.arguments:
        nr = number(rule.syscall, machine)
        if nr is not None and context.applies(rule.when):
            checked.setdefault(nr, []).append(rule)

    for nr, rules in checked.items():
        block = [part for rule in rules for part in _argument_block(rule, context.protected_pids)]
        block.append(bpf.give_errno(denied.pop(nr)) if nr in denied else bpf.give(bpf.RETURN_ALLOW))
        program += [bpf.instruction(bpf.JUMP_EQUAL, nr, 0, len(block)), *block]
    for code in sorted(set(denied.values())):
        numbers = sorted(nr for nr, action in denied.items() if action == code)
        for index, nr in enumerate(numbers):
            rest = len(numbers) - index
            last = rest == 1
            program.append(bpf.instruction(bpf.JUMP_EQUAL, nr, rest - 1, 1 if last else 0))
        program.append(bpf.give_errno(code))
    program.append(bpf.give(bpf.RETURN_ALLOW))
    if len(program) > bpf.MAX_INSTRUCTIONS:
        raise ValueError(f"filter of {len(program)} instructions, the kernel takes {bpf.MAX_INSTRUCTIONS}")
    return b"".join(program)


def install(filter_bytes: bytes) -> None:
    """Confine the calling thread and its future children; irreversible.

    Call it last and from a single-threaded process: other threads stay free.

    Raises:
        OSError: The kernel refused, EACCES when no_new_privs is not set.
    """
    syscalls.seccomp_set_filter(filter_bytes)


def _numbers(rule: CallRule, machine: str) -> list[int]:
    return [nr for name in rule.syscalls if (nr := number(name, machine)) is not None]


def _errno(name: str) -> int:
    code = getattr(errno, name, None)
    if not isinstance(code, int):
        raise ValueError(f"{name} is no errno")
    return code


def _argument_block(rule: ArgumentRule, protected_pids: Sequence[int]) -> list[bytes]:
    """Instructions that end in the rule's errno or fall through to what follows."""
    block = [bpf.load_argument(rule.argument)]
    deny = bpf.give_errno(_errno(rule.action))
    if rule.test == "any_bits":
        mask = 0
        for value in rule.values:
            mask |= value
        return [*block, bpf.instruction(bpf.JUMP_ANY_BITS, mask, 0, 1), deny]
    if rule.test == "between":
        low, high = rule.values
        above = bpf.instruction(bpf.JUMP_GREATER, high, 2, 0)
        return [*block, above, bpf.instruction(bpf.JUMP_GREATER_EQUAL, low, 0, 1), deny]
    values: Sequence[int] = rule.values
    if rule.test == "protected_pid":
        values = [target for pid in protected_pids for target in (pid, -pid)] + [-1]
    if rule.test == "low_bits_not_equals":
        block.append(bpf.instruction(bpf.AND, _TYPE_BITS))
    count = len(values)
    if rule.test in ("not_equals", "low_bits_not_equals"):
        matches = [bpf.instruction(bpf.JUMP_EQUAL, value, count - index, 0) for index, value in enumerate(values)]
        return [*block, *matches, deny]
    matches = [
        bpf.instruction(bpf.JUMP_EQUAL, value, count - 1 - index, 1 if index == count - 1 else 0)
        for index, value in enumerate(values)
    ]
    return [*block, *matches, deny]
