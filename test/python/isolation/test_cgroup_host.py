"""Detection on hosts we are not on: trees of plain files stand in for the kernel's."""

import tempfile
import unittest
from pathlib import Path

from worker.isolation.cgroup import CgroupLimits, EpisodeCgroup
from worker.isolation.cgroup_host import CgroupHost
from worker.isolation.cgroup_mounts import groups, locate, mounts


class FakeTree(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.top = Path(folder.name)
        self.mountinfo = f"30 1 0:20 / {self.top} rw - cgroup2 cgroup2 rw\n"

    def group(self, path: str, *, controllers: str = "cpu memory pids", given: str = "", procs: str = "") -> Path:
        directory = self.top / path.lstrip("/")
        directory.mkdir(parents=True, exist_ok=True)
        (directory / "cgroup.controllers").write_text(controllers)
        (directory / "cgroup.subtree_control").write_text(given)
        (directory / "cgroup.procs").write_text(procs)
        if path != "/":
            (directory / "cgroup.type").write_text("domain")
        return directory

    def detect(self, membership: str, *, arrange: bool = True) -> CgroupHost:
        return CgroupHost.detect(self.mountinfo, membership, arrange=arrange)


class DetectV2(FakeTree):
    def test_an_empty_own_group_is_the_parent(self) -> None:
        self.group("/")
        own = self.group("/service")
        host = self.detect("0::/service\n")
        self.assertEqual((host.version, host.memory, host.unified), ("v2", own, own))
        self.assertEqual((own / "cgroup.subtree_control").read_text(), "+memory +pids")

    def test_looking_changes_nothing(self) -> None:
        self.group("/")
        own = self.group("/service")
        host = self.detect("0::/service\n", arrange=False)
        self.assertEqual(host.memory, own)
        self.assertEqual((own / "cgroup.subtree_control").read_text(), "")

    def test_an_occupied_group_gives_way_to_an_ancestor(self) -> None:
        self.group("/")
        parent = self.group("/slice", given="memory pids")
        self.group("/slice/session", procs="17\n")
        host = self.detect("0::/slice/session\n", arrange=False)
        self.assertEqual(host.memory, parent)
        self.assertIn("holds processes", host.notes[0])

    def test_a_namespace_root_is_emptied_into_a_leaf(self) -> None:
        top = self.group("/", procs="1\n17\n")
        (top / "cgroup.type").write_text("domain")
        leaf = top / "forkyard-service"
        leaf.mkdir()
        (leaf / "cgroup.procs").write_text("")
        host = self.detect("0::/\n")
        self.assertEqual(host.memory, top)
        self.assertEqual((leaf / "cgroup.procs").read_text(), "17")

    def test_controllers_that_are_not_given_are_named(self) -> None:
        self.group("/", controllers="cpu")
        host = self.detect("0::/\n", arrange=False)
        self.assertEqual(host.version, "none")
        self.assertIn("not given memory and pids", host.notes[0])

    def test_no_mount_is_said(self) -> None:
        host = CgroupHost.detect("22 27 0:21 / /proc rw - proc proc rw\n", "0::/\n")
        self.assertEqual((host.version, host.notes), ("none", ["no cgroup file system is mounted"]))


class DetectV1(FakeTree):
    def test_each_controller_has_its_own_parent(self) -> None:
        for name in ("memory", "pids", "cpuacct", "freezer"):
            (self.top / name / "own").mkdir(parents=True)
        self.mountinfo = "".join(
            f"3{index} 1 0:2{index} / {self.top}/{name} rw - cgroup cgroup rw,{name}\n"
            for index, name in enumerate(("memory", "pids", "cpuacct", "freezer"))
        )
        host = self.detect("4:memory:/own\n3:pids:/\n2:cpuacct:/own\n1:freezer:/own\n")
        self.assertEqual(host.version, "v1")
        self.assertEqual(host.memory, self.top / "memory" / "own")
        self.assertEqual(host.pids, self.top / "pids")
        self.assertEqual(host.freezer, self.top / "freezer" / "own")

    def test_a_v2_mount_beside_makes_it_hybrid(self) -> None:
        for name in ("memory", "unified"):
            (self.top / name).mkdir()
        self.mountinfo = (
            f"31 1 0:21 / {self.top}/memory rw - cgroup cgroup rw,memory\n"
            f"32 1 0:22 / {self.top}/unified rw - cgroup2 cgroup2 rw\n"
        )
        host = self.detect("4:memory:/\n0::/\n")
        self.assertEqual((host.version, host.unified, host.cpu), ("hybrid", self.top / "unified", self.top / "unified"))


class Mounts(unittest.TestCase):
    def test_a_bind_of_a_subtree_is_undone(self) -> None:
        with tempfile.TemporaryDirectory() as folder:
            mounted = mounts(f"31 1 0:21 /docker/abc {folder} ro - cgroup2 cgroup2 rw\n")
            place = locate("", mounted, groups("0::/docker/abc\n"))
            self.assertEqual(place, (Path(folder), Path(folder)))

    def test_shared_controllers_are_split(self) -> None:
        self.assertEqual(groups("4:cpu,cpuacct:/a\n0::/b\n"), {"cpu": "/a", "cpuacct": "/a", "": "/b"})


class GroupV2(FakeTree):
    def test_limits_and_accounts_use_the_v2_files(self) -> None:
        directory = self.group("/episode")
        for name, text in {
            "memory.max": "max",
            "memory.swap.max": "max",
            "memory.oom.group": "0",
            "memory.peak": "4096\n",
            "memory.events": "low 0\noom 1\noom_kill 2\n",
            "pids.max": "max",
            "pids.events": "max 3\n",
            "cpu.stat": "usage_usec 1500\nuser_usec 1\n",
            "cgroup.kill": "",
        }.items():
            (directory / name).write_text(text)
        group = EpisodeCgroup("e", directory, directory, directory, None, directory)
        group.apply(CgroupLimits(memory_bytes=1 << 20, processes=9))
        written = {name: (directory / name).read_text() for name in ("memory.max", "pids.max", "memory.oom.group")}
        self.assertEqual(written["memory.max"], "1048576")
        self.assertTrue(written["pids.max"].startswith("9"))
        self.assertEqual(written["memory.oom.group"], "1")
        self.assertTrue((directory / "memory.swap.max").read_text().startswith("0"))
        self.assertEqual(group.usage(), (1_500_000, 4096))
        self.assertEqual((group.oom_kills(), group.pids_limit_hits()), (2, 3))
        group.kill()
        self.assertEqual((directory / "cgroup.kill").read_text(), "1")
        self.assertEqual(group.directories(), [directory])
        self.assertEqual(group.paths()["cpu_stat"], str(directory / "cpu.stat"))
