import json
import tempfile
import unittest
from pathlib import Path
from typing import Any

from worker.isolation import seccomp
from worker.isolation.policy import DEFAULT_PATH, PolicyError, load_policy
from worker.isolation.syscall_numbers import AUDIT_ARCH


class LoadPolicy(unittest.TestCase):
    def load(self, change: dict[str, Any]) -> None:
        value = json.loads(DEFAULT_PATH.read_text())
        for path, replacement in change.items():
            *parents, key = path.split(".")
            target = value
            for parent in parents:
                target = target[int(parent)] if parent.isdigit() else target[parent]
            if replacement is None:
                del target[key]
            else:
                target[key] = replacement
        with tempfile.TemporaryDirectory() as folder:
            file = Path(folder) / "policy.json"
            file.write_text(json.dumps(value))
            load_policy(file)

    def test_the_shipped_policy_loads(self) -> None:
        policy = load_policy()
        self.assertEqual(policy.quotas.work_and_tmp_inodes, 10_000)
        self.assertIn("/usr", policy.landlock.read)

    def test_an_unknown_key_is_refused_by_its_path(self) -> None:
        with self.assertRaisesRegex(PolicyError, r"policy\.landlock\.wirte: unknown key"):
            self.load({"landlock.wirte": []})

    def test_an_unknown_key_in_a_list_is_refused_by_its_path(self) -> None:
        with self.assertRaisesRegex(PolicyError, r"policy\.seccomp\.calls\[0\]\.note: unknown key"):
            self.load({"seccomp.calls.0.note": "x"})

    def test_a_missing_key_is_refused_by_its_path(self) -> None:
        with self.assertRaisesRegex(PolicyError, r"policy\.quotas\.shm_bytes: missing"):
            self.load({"quotas.shm_bytes": None})

    def test_a_wrong_type_is_refused(self) -> None:
        with self.assertRaisesRegex(PolicyError, r"policy\.quotas\.shm_bytes: expected int, found '1'"):
            self.load({"quotas.shm_bytes": "1"})

    def test_true_is_no_number(self) -> None:
        with self.assertRaisesRegex(PolicyError, r"shm_bytes: expected int"):
            self.load({"quotas.shm_bytes": True})

    def test_an_unknown_condition_is_refused(self) -> None:
        with self.assertRaisesRegex(PolicyError, r"calls\[0\]\.when: 'sometimes' is none of"):
            self.load({"seccomp.calls.0.when": "sometimes"})

    def test_another_schema_version_is_refused(self) -> None:
        with self.assertRaisesRegex(PolicyError, "schema_version: expected 1, found 2"):
            self.load({"schema_version": 2})

    def test_an_unknown_call_is_refused(self) -> None:
        policy = load_policy()
        rule = policy.seccomp.calls[0]
        broken = type(policy.seccomp)(471, (type(rule)("x", "always", "EPERM", ("mont",)),), ())
        context = seccomp.SeccompContext(ipc_namespace=True, private_root=True, own_uid=True)
        for machine in AUDIT_ARCH:
            with self.assertRaisesRegex(KeyError, "mont"):
                seccomp.compile_filter(broken, context, machine)
