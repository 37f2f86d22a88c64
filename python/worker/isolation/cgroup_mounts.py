"""Where cgroup file systems are mounted and where the caller is in them, from /proc/self."""

from pathlib import Path

#: Controller ('' for v2) to the root of its mount within the hierarchy and the mount's place.
Mounts = dict[str, tuple[str, Path]]
#: Controller ('' for v2) to a group's path within the hierarchy.
Memberships = dict[str, str]


def mounts(mountinfo: str) -> Mounts:
    """Controller ('' for v2) to the root and the place of its mount; the first mount wins."""
    found: Mounts = {}
    for line in mountinfo.splitlines():
        before, _, after = line.partition(" - ")
        kind, _source, options = after.split(" ", 2)
        root, place = before.split(" ")[3:5]
        names = [""] if kind == "cgroup2" else options.split(",") if kind == "cgroup" else []
        for name in names:
            found.setdefault(name, (root, Path(place)))
    return found


def groups(membership: str) -> Memberships:
    """Controller ('' for v2) to the caller's group."""
    rows = [line.split(":", 2) for line in membership.splitlines()]
    return {name: path for _, controllers, path in rows for name in controllers.split(",")}


def locate(controller: str, mounted: Mounts, memberships: Memberships) -> tuple[Path, Path] | None:
    """The mount's top directory and the caller's own directory below it."""
    if controller not in mounted or controller not in memberships:
        return None
    root, place = mounted[controller]
    group = memberships[controller]
    if root != "/" and group.startswith(root):
        group = group[len(root) :]
    directory = place / group.lstrip("/")
    return place, directory if directory.is_dir() else place
