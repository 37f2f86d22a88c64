"""Each isolation layer tried for real, in a child that is thrown away."""

import os
import signal
from collections.abc import Callable
from pathlib import Path

from . import seccomp
from . import syscalls as sc
from .identity import Identity, drop, enter_zygote_userns, needs_zygote_userns, plan_identity
from .landlock import restrict
from .namespaces import PidNamespaceForker
from .policy import Policy
from .private_root import enter
from .python_paths import interpreter_paths
from .root_plan import RootPlan, plan_root
from .root_template import make_template

_UNPRIVILEGED_UID = 65534


def trial(attempt: Callable[[], None]) -> str | None:
    """Run `attempt` in a forked child.

    Returns:
        None when it worked, else a sentence about what failed.
    """
    reader, writer = os.pipe()
    pid = os.fork()
    if pid == 0:
        os.close(reader)
        status = 1
        try:
            attempt()
            status = 0
        except BaseException as error:
            os.write(writer, f"{type(error).__name__}: {error}".encode()[:4096])
        finally:
            os._exit(status)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        message = file.read().decode(errors="replace")
    _, status = os.waitpid(pid, 0)
    if status == 0:
        return None
    if os.WIFSIGNALED(status):
        return f"killed by {signal.Signals(os.WTERMSIG(status)).name}"
    return message or "failed without a message"


def try_landlock() -> None:
    """Confine this process to nothing."""
    sc.set_no_new_privs()
    restrict([], sc.landlock_abi())


def try_seccomp(policy: Policy) -> None:
    """Install the filter and see it refuse one call."""
    context = seccomp.SeccompContext(ipc_namespace=True, private_root=True, own_uid=True)
    sc.set_no_new_privs()
    seccomp.install(seccomp.compile_filter(policy.seccomp, context))
    try:
        sc.unshare(sc.CLONE_NEWUSER)
    except PermissionError:
        return
    raise RuntimeError("the filter is installed but refuses nothing")


def try_user_namespace() -> None:
    """Make a user namespace as an unprivileged uid and use a capability in it."""
    if not needs_zygote_userns():
        os.setgroups([])
        os.setresgid(*[_UNPRIVILEGED_UID] * 3)
        os.setresuid(*[_UNPRIVILEGED_UID] * 3)
        sc.set_dumpable(True)
    enter_zygote_userns()
    sc.unshare(sc.CLONE_NEWUTS)
    sc.sethostname("trial")


def try_namespace(kind: int) -> None:
    """Make one namespace the way a zygote would."""
    _become_root_like()
    sc.unshare(kind)


def try_private_root(policy: Policy, user_namespace: bool) -> None:
    """Go the whole way of an episode, to a worker that can start its own interpreter's files."""
    _become_root_like()
    paths = interpreter_paths()
    plan = plan_root(policy.private_root, policy.identity, policy.quotas, paths)
    identity = plan_identity(policy.identity, os.getpid(), paths, private_root=True, user_namespace=user_namespace)
    forker = PidNamespaceForker()
    template = make_template(plan, forker)
    _wait_for(forker.fork, lambda: _enter(plan, template, identity))


def _enter(plan: RootPlan, template: int, identity: Identity) -> None:
    enter(plan, template, identity.uid, identity.gid)
    _wait_for(os.fork, lambda: _become(identity, plan.work))


def _become(identity: Identity, work: str) -> None:
    drop(identity)
    (Path(work) / "trial").write_text("")


def _become_root_like() -> None:
    if needs_zygote_userns():
        enter_zygote_userns()


def _wait_for(fork: Callable[[], int], attempt: Callable[[], None]) -> None:
    """Run `attempt` in a child made by `fork`; its failure is raised here."""
    reader, writer = os.pipe()
    pid = fork()
    if pid == 0:
        try:
            attempt()
        except BaseException as error:
            os.write(writer, str(error).encode()[:4096])
            os._exit(1)
        os._exit(0)
    os.close(writer)
    with os.fdopen(reader, "rb") as file:
        message = file.read().decode(errors="replace")
    _, status = os.waitpid(pid, 0)
    if status != 0:
        raise RuntimeError(message or f"child ended with status {status}")
