"""The conformance checks that the published packages bring along."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

from openenv.cli.__main__ import app
from typer.testing import CliRunner


def validate_running(base_url: str, flags: list[str]) -> dict[str, Any]:
    """`openenv validate --url`: its exit code and its JSON report."""
    done = CliRunner().invoke(app, ["validate", "--url", base_url, *flags])
    return {"exit_code": done.exit_code, "report": json.loads(done.stdout)}


def runtime_suite(base_url: str) -> dict[str, Any]:
    """The runtime graders of openenv 0.10: they judge raw frames against `/schema`, reward and state rules."""
    from openenv.validation.graders.runtime import (
        ObservationSchemaGrader,
        RewardWellFormedGrader,
        StateContractGrader,
    )
    from openenv.validation.runtime.collector import collect_runtime_evidence
    from openenv.validation.runtime.contracts import RuntimePlan

    plan = RuntimePlan.model_validate(
        {
            "plan_schema_version": "1",
            "reset": {"episode_id": "suite-1", "seed": 7, "options": {"context": "hello"}},
            "actions": [
                {"code": "n = len(context)"},
                {"code": "print(n)"},
                {"code": "1 / 0"},
                {"code": "print(FINAL(n))"},
            ],
        }
    )
    evidence = collect_runtime_evidence(base_url, plan, episode_timeout_s=60)
    subject = SimpleNamespace(
        runtime_evidence=evidence,
        manifest=SimpleNamespace(reward=SimpleNamespace(range=(-1.0, 1.0))),
    )
    graders = (ObservationSchemaGrader(), RewardWellFormedGrader(), StateContractGrader())
    return {
        "failure": evidence.failure_reason,
        "exchanges": len(evidence.exchanges),
        "results": {
            grader.check_id: {"status": result.status.value, "evidence": result.evidence}
            for grader in graders
            for result in [grader.run(subject)]
        },
    }
