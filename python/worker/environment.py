"""Working folder, variables and module path of agent code, built from nothing."""

import os
import sys
import tempfile

_OWN_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))


def enter_workspace(work: str, *, shared_tmp: bool) -> None:
    """Go to the work folder and make an environment that names nothing of the host.

    Args:
        shared_tmp: /tmp is the episode's own; otherwise temporary files go below the work folder.
    """
    os.chdir(work)
    tmp = "/tmp" if shared_tmp else os.path.join(work, "tmp")
    if not shared_tmp:
        os.makedirs(tmp, exist_ok=True)
        status = os.stat(work)
        os.chown(tmp, status.st_uid, status.st_gid)
    kept = {name: value for name, value in os.environ.items() if name.endswith("_NUM_THREADS")}
    os.environ.clear()
    os.environ.update(kept)
    os.environ.update(
        PATH=f"{os.path.join(sys.prefix, 'bin')}:/usr/local/bin:/usr/bin:/bin",
        LANG="C.UTF-8",
        HOME=work,
        TMPDIR=tmp,
        PYTHONHASHSEED="0",
    )
    tempfile.tempdir = None
    sys.path[:] = ["", *(path for path in sys.path if path not in ("", _OWN_PACKAGE))]
    sys.argv[:] = [""]
