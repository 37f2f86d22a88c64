"""A typed client for the REPL environment on top of the published EnvClient.

The REPL client of OpenEnv is not on any package registry. This one sends and
reads the same fields with the same strictness: every field must be there, texts
are texts, counts are not negative, and `metadata` is an object.
"""

from __future__ import annotations

from typing import Any

from openenv.core.client_types import StepResult
from openenv.core.env_client import EnvClient
from openenv.core.env_server.types import Action, Observation, State
from pydantic import BaseModel, ConfigDict, Field


class CellResult(BaseModel):
    """What one cell did."""

    model_config = ConfigDict(extra="forbid", strict=True)

    stdout: str
    stderr: str
    locals_snapshot: dict[str, str]
    execution_time: float = Field(ge=0)
    success: bool
    exception: str | None


class ReplAction(Action):
    """A cell to run, or the final answer."""

    code: str = ""
    is_final: bool = False
    final_answer: str | None = None


class ReplObservation(Observation):
    """What the policy sees after a reset or a step."""

    result: CellResult
    context_preview: str | None
    context_length: int = Field(ge=0)
    available_variables: list[str]
    iteration: int = Field(ge=0)
    max_iterations: int = Field(ge=1)


class ReplState(State):
    """The whole state of an episode."""

    context: str | None
    task_prompt: str | None
    iteration: int = Field(ge=0)
    max_iterations: int = Field(ge=1)
    namespace_keys: list[str]
    final_answer: str | None
    total_execution_time: float = Field(ge=0)


class ReplClient(EnvClient[ReplAction, ReplObservation, ReplState]):
    """Reads `metadata` inside the observation, as clients before June 2026 do."""

    def _step_payload(self, action: ReplAction) -> dict[str, Any]:
        return {"code": action.code, "is_final": action.is_final, "final_answer": action.final_answer}

    def _metadata(self, payload: dict[str, Any]) -> Any:
        return payload["observation"]["metadata"]

    def _parse_result(self, payload: dict[str, Any]) -> StepResult[ReplObservation]:
        seen = payload["observation"]
        result = seen["result"]
        observation = ReplObservation(
            result=CellResult(**{name: result[name] for name in CellResult.model_fields}),
            context_preview=seen["context_preview"],
            context_length=seen["context_length"],
            available_variables=seen["available_variables"],
            iteration=seen["iteration"],
            max_iterations=seen["max_iterations"],
            done=payload["done"],
            reward=payload["reward"],
            metadata=self._metadata(payload),
        )
        return StepResult(observation=observation, reward=payload["reward"], done=payload["done"])

    def _parse_state(self, payload: dict[str, Any]) -> ReplState:
        return ReplState(**{name: payload[name] for name in ReplState.model_fields})

    async def execute(self, code: str) -> StepResult[ReplObservation]:
        """Run one cell."""
        return await self.step(ReplAction(code=code))

    async def submit_final_answer(self, answer: str) -> StepResult[ReplObservation]:
        """End the episode with an answer."""
        return await self.step(ReplAction(is_final=True, final_answer=answer))

    async def get_variable(self, name: str) -> StepResult[ReplObservation]:
        """Print the repr of a variable."""
        return await self.execute(f"print(repr({name}))")

    async def list_variables(self) -> list[str]:
        """Names in the namespace, from the state."""
        state: ReplState = await self.state()
        return state.namespace_keys


class TopMetadataReplClient(ReplClient):
    """Reads `metadata` beside reward and done first, as clients since June 2026 do."""

    def _metadata(self, payload: dict[str, Any]) -> Any:
        return payload.get("metadata", payload["observation"].get("metadata", {}))
