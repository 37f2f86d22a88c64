"""The isolation policy: `sandbox/policy.json` as frozen, checked values.

Quantities carry their unit in the name. A policy with an unknown, missing or
mistyped key is refused with the key's full path: no default stands in for it.
"""

import dataclasses
import json
import typing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

SCHEMA_VERSION = 1
DEFAULT_PATH = Path(__file__).resolve().parents[3] / "sandbox" / "policy.json"

#: When a seccomp rule applies; `SeccompContext` in seccomp.py decides.
Condition = Literal["always", "no_ipc_namespace", "no_private_root", "shared_uid", "protected_pids"]
#: How an argument rule compares the low 32 bits of one argument.
ArgumentTest = Literal["any_bits", "equals", "not_equals", "low_bits_not_equals", "between", "protected_pid"]


class PolicyError(ValueError):
    """The policy file does not say what this version needs to know."""


@dataclass(frozen=True, slots=True)
class PrivateRootPolicy:
    """What the private root of level `namespaces` shows; paths are absolute.

    Attributes:
        system_paths: Shown read-only at the same place; a symlink is copied as a symlink.
        etc_paths: Single entries of /etc shown read-only; missing ones are skipped.
        devices: Names under /dev.
        gpu_devices: Glob patterns, used only for an episode that is given a GPU.
        work_candidates: Places for the work folder; the first that overlaps no Python path is taken.
        skeleton_bytes, skeleton_inodes: Size of the tmpfs that carries the mount points.
    """

    system_paths: tuple[str, ...]
    etc_paths: tuple[str, ...]
    sys_paths: tuple[str, ...]
    devices: tuple[str, ...]
    gpu_devices: tuple[str, ...]
    gpu_sys_paths: tuple[str, ...]
    work_candidates: tuple[str, ...]
    tmp_path: str
    hostname: str
    proc_options: str
    skeleton_bytes: int
    skeleton_inodes: int


@dataclass(frozen=True, slots=True)
class Quotas:
    """Sizes of an episode's tmpfs mounts; work and tmp share one."""

    work_and_tmp_bytes: int
    work_and_tmp_inodes: int
    shm_bytes: int
    shm_inodes: int


@dataclass(frozen=True, slots=True)
class UidRange:
    """`count` host uids from `first` on, equal to the gids used."""

    first: int
    count: int


@dataclass(frozen=True, slots=True)
class IdentityPolicy:
    """Who agent code is; `host_uid_ranges` are tried in order for one the host has mapped."""

    inner_uid: int
    inner_gid: int
    user_name: str
    host_uid_ranges: tuple[UidRange, ...]


@dataclass(frozen=True, slots=True)
class LandlockPolicy:
    """Paths by right. `private_root_read` replaces `read` inside a private root."""

    private_root_read: tuple[str, ...]
    read: tuple[str, ...]
    device_read_write: tuple[str, ...]
    device_read: tuple[str, ...]
    shm_path: str


@dataclass(frozen=True, slots=True)
class RlimitPolicy:
    """The limits no caller sets; -1 means unlimited."""

    core_bytes: int
    stack_bytes: int
    locked_memory_bytes: int
    locked_memory_gpu_bytes: int
    message_queue_bytes: int
    realtime_priority: int
    pending_signals: int


@dataclass(frozen=True, slots=True)
class CallRule:
    """Deny whole calls: `action` is the errno's name."""

    name: str
    when: Condition
    action: str
    syscalls: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ArgumentRule:
    """Deny one call when one of its arguments passes `test` against `values`."""

    syscall: str
    argument: int
    test: ArgumentTest
    values: tuple[int, ...]
    action: str
    when: Condition
    name: str


@dataclass(frozen=True, slots=True)
class SeccompPolicy:
    """Calls numbered above `newest_syscall` answer ENOSYS; calls in no rule are allowed."""

    newest_syscall: int
    calls: tuple[CallRule, ...]
    arguments: tuple[ArgumentRule, ...]


@dataclass(frozen=True, slots=True)
class Policy:
    """The whole of `sandbox/policy.json`."""

    schema_version: int
    private_root: PrivateRootPolicy
    quotas: Quotas
    identity: IdentityPolicy
    landlock: LandlockPolicy
    rlimits: RlimitPolicy
    seccomp: SeccompPolicy


def load_policy(path: Path = DEFAULT_PATH) -> Policy:
    """Read and check a policy file.

    Raises:
        OSError: The file cannot be read.
        PolicyError: It is not JSON, has another schema version, or a key is
            unknown, missing or of the wrong type; the message names the key.
    """
    try:
        value = json.loads(path.read_bytes())
    except ValueError as error:
        raise PolicyError(f"{path}: not JSON: {error}") from error
    if isinstance(value, dict) and value.get("schema_version") != SCHEMA_VERSION:
        raise PolicyError(f"schema_version: expected {SCHEMA_VERSION}, found {value.get('schema_version')!r}")
    policy = _convert(Policy, value, "policy")
    assert isinstance(policy, Policy)
    return policy


def _convert(kind: Any, value: Any, where: str) -> Any:
    """Turn parsed JSON into `kind`: a dataclass, tuple[X, ...], Literal, int or str."""
    if dataclasses.is_dataclass(kind) and isinstance(kind, type):
        if not isinstance(value, dict):
            raise PolicyError(f"{where}: expected an object")
        hints = typing.get_type_hints(kind)
        for key in value:
            if key not in hints:
                raise PolicyError(f"{where}.{key}: unknown key")
        for key in hints:
            if key not in value:
                raise PolicyError(f"{where}.{key}: missing")
        return kind(**{key: _convert(hint, value[key], f"{where}.{key}") for key, hint in hints.items()})
    origin = typing.get_origin(kind)
    if origin is tuple:
        if not isinstance(value, list):
            raise PolicyError(f"{where}: expected an array")
        item = typing.get_args(kind)[0]
        return tuple(_convert(item, entry, f"{where}[{index}]") for index, entry in enumerate(value))
    if origin is Literal:
        if value not in typing.get_args(kind):
            raise PolicyError(f"{where}: {value!r} is none of {', '.join(typing.get_args(kind))}")
        return value
    if not isinstance(value, kind) or isinstance(value, bool):
        raise PolicyError(f"{where}: expected {kind.__name__}, found {value!r}")
    return value
