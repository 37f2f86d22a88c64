import os
import tempfile
import unittest
from pathlib import Path
from typing import Any

from worker.isolation.host_report import detect_levels
from worker.isolation.probe import required_for

from .confined import Lost, Setup, probe_here, run
from .hosts import IS_ROOT, REPORT, VARIANTS

SERVICE = os.getpid()


class Attest(unittest.TestCase):
    def setUp(self) -> None:
        folder = tempfile.TemporaryDirectory(dir="/var/tmp")
        self.addCleanup(folder.cleanup)
        os.chmod(folder.name, 0o755)
        self.canary = Path(folder.name, "canary")
        self.canary.write_text("secret")

    def attest(self, setup: Setup) -> dict[str, Any]:
        found = run(lambda: probe_here(setup.level, str(self.canary), SERVICE), setup)
        assert isinstance(found, dict)
        return found

    def failures(self, setup: Setup) -> set[str]:
        answers = self.attest(setup)
        return {name for name in required_for(setup.level) if answers.get(name) is not True}

    def test_every_layer_holds_at_every_level(self) -> None:
        self.assertTrue(VARIANTS, "this host gives no level at all")
        for level, plain in VARIANTS:
            with self.subTest(level=level, plain_user=plain):
                self.assertEqual(self.failures(Setup(level=level, plain_user=plain)), set())

    def test_a_missing_filter_is_noticed(self) -> None:
        for level, plain in VARIANTS:
            with self.subTest(level=level, plain_user=plain):
                failed = self.failures(Setup(level=level, plain_user=plain, without=frozenset({"seccomp"})))
                self.assertLessEqual({"seccomp_enforced", "network_denied", "io_uring_denied"}, failed)

    def test_missing_file_rules_are_noticed(self) -> None:
        for level, plain in VARIANTS:
            with self.subTest(level=level, plain_user=plain):
                failed = self.failures(Setup(level=level, plain_user=plain, without=frozenset({"landlock"})))
                self.assertIn("landlock_enforced", failed)
                if level == "landlock":
                    self.assertLessEqual({"canary_unreadable", "write_outside_denied"}, failed)

    def test_a_leaked_descriptor_is_noticed(self) -> None:
        def body() -> Any:
            os.dup2(1, 200)
            return probe_here(level, str(self.canary), SERVICE)["descriptors_expected"]

        for level, plain in VARIANTS:
            self.assertIs(run(body, Setup(level=level, plain_user=plain)), False)

    def test_the_probe_leaves_nothing_behind(self) -> None:
        def body() -> list[str]:
            probe_here(level, str(self.canary), SERVICE)
            return os.listdir(".")

        for level, plain in VARIANTS:
            with self.subTest(level=level, plain_user=plain):
                self.assertEqual(run(body, Setup(level=level, plain_user=plain)), [])

    @unittest.skipUnless(IS_ROOT, "needs root")
    def test_facts_tell_a_shared_uid(self) -> None:
        for level, plain in VARIANTS:
            answers = self.attest(Setup(level=level, plain_user=plain))
            if level == "namespaces":
                self.assertIs(answers["own_user_namespace"], REPORT.user_namespace)
                self.assertIs(answers["own_uid_nonzero"], True)


class DetectLevels(unittest.TestCase):
    def test_every_missing_layer_has_a_sentence(self) -> None:
        for name, why in REPORT.layers.items():
            if why is not None:
                self.assertRegex(why, r"\w+ .*\w", name)
        self.assertEqual(REPORT.levels[-1], "none")

    def test_a_host_without_namespaces_gives_landlock_and_says_why(self) -> None:
        if "landlock" not in REPORT.levels:
            self.skipTest("this host has no level landlock")

        def body() -> Any:
            # The filter of level landlock is what a container's profile is to us.
            report = detect_levels()
            return [list(report.levels), report.layers["private_root"], report.layers["user_namespace"], report.root]

        try:
            levels, root, user, _ = run(body, Setup(level="landlock", without=frozenset({"landlock"})))
        except Lost as lost:
            self.fail(str(lost))
        self.assertEqual(levels, ["landlock", "none"])
        self.assertIn("unshare: Operation not permitted. ", user)
        self.assertRegex(root, r"Operation not permitted.*\. \w")
