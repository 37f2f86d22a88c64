"""Which folders this interpreter needs, and whether an unprivileged uid reaches them."""

import os
import site
import stat
import sys
import sysconfig
from collections.abc import Iterable


def interpreter_paths(extra: Iterable[str] = ()) -> tuple[str, ...]:
    """Paths to show read-only so that this interpreter runs, imports and starts children.

    They are folders, and single files where a symlink to the interpreter lies
    elsewhere. Each is named as Python names it and, where that leads through a symlink,
    as it really lies. Paths that lie in another of the list are left out.

    Args:
        extra: More absolute paths, for example the worker's own source folder.

    Raises:
        ValueError: Python is installed at /, which no private root can show.
    """
    named = [sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix]
    named += [sysconfig.get_path(key) for key in ("stdlib", "platstdlib", "purelib", "platlib")]
    named += site.getsitepackages()
    if site.ENABLE_USER_SITE and site.USER_SITE:
        named.append(site.USER_SITE)
    named += extra
    named += _link_chain(os.path.abspath(sys.executable))
    existing = [os.path.abspath(path) for path in named if path and os.path.exists(path)]
    paths = outermost([*existing, *map(os.path.realpath, existing)])
    if "/" in paths:
        raise ValueError("Python is installed at /; install it in a folder of its own")
    return paths


def outermost(paths: Iterable[str]) -> tuple[str, ...]:
    """The paths, sorted, without those that lie below another."""
    kept: list[str] = []
    for path in sorted(set(paths)):
        if not any(path.startswith(parent.rstrip("/") + "/") for parent in kept):
            kept.append(path)
    return tuple(kept)


def prefixes_reachable(prefixes: Iterable[str]) -> bool:
    """Whether a uid that owns nothing may enter every path.

    False when a folder on the way, or the path itself, has no search right for
    others: Python below a 0700 home. A missing path counts as reachable.
    """
    return all(_open_to_others(prefix) for prefix in prefixes)


def _open_to_others(path: str) -> bool:
    path = os.path.realpath(path)
    while True:
        try:
            status = os.stat(path)
        except FileNotFoundError:
            return True
        if stat.S_ISDIR(status.st_mode) and not status.st_mode & stat.S_IXOTH:
            return False
        parent = os.path.dirname(path)
        if parent == path:
            return True
        path = parent


def _link_chain(path: str) -> list[str]:
    """`path` and every symlink on the way to the file it means."""
    chain = [path]
    while os.path.islink(chain[-1]) and len(chain) < 40:
        chain.append(os.path.join(os.path.dirname(chain[-1]), os.readlink(chain[-1])))
    return chain
