"""Episodes of ml_debug: through the generic clients, and as its own HTTP agents play and format them."""

from __future__ import annotations

from typing import Any

import httpx
from openenv.core.generic_client import GenericEnvClient
from openenv.core.mcp_client import MCPToolClient

SETUP = "import torch\nw = torch.ones(2, 3, requires_grad=True)\n(w * 2).sum().backward()"
#: What an agent of the original tries in one episode, and one turn more with code that is none.
CALLS: list[dict[str, Any]] = [
    {"action_type": "execute_snippet", "code": "print('hello')\nraise ValueError('no')"},
    {"action_type": "inspect_tensor", "setup_code": SETUP, "target_expression": "w"},
    {"action_type": "inspect_tensor", "target_expression": "torch.tensor([float('nan'), float('inf')])"},
    {"action_type": "get_variable_state", "expressions": ["w.shape", "missing"]},
    {"action_type": "run_training_probe", "steps": 2},
    {"action_type": "inspect_tensor", "target_expression": ""},
]


class Agent:
    """Sends what the agents of the original send: every request on a client of its own, the id in the action."""

    def __init__(self, base_url: str) -> None:
        self._base_url = base_url.rstrip("/")
        self._episode_id = ""

    def get(self, path: str) -> Any:
        """The JSON at a path."""
        with httpx.Client(timeout=60) as client:
            return client.get(f"{self._base_url}{path}").raise_for_status().json()

    def reset(self, task_id: str) -> dict[str, Any]:
        """Start an episode; the observation."""
        observation: dict[str, Any] = self._post("/reset", {"task_id": task_id})["observation"]
        self._episode_id = observation["episode_id"]
        return observation

    def step(self, action: dict[str, Any]) -> dict[str, Any]:
        """Perform one action; the whole answer."""
        return self._post("/step", {"action": {**action, "episode_id": self._episode_id}})

    def _post(self, path: str, body: dict[str, Any]) -> dict[str, Any]:
        with httpx.Client(timeout=60) as client:
            answer: dict[str, Any] = client.post(f"{self._base_url}{path}", json=body).raise_for_status().json()
            return answer


def told(observation: dict[str, Any]) -> str:
    """One observation as such an agent tells it to its model: it slices and formats without looking at types."""
    action, error = observation["action_type"], observation.get("error")
    if error:
        return f"{action}: ERROR {error[:200]}"
    if action == "execute_snippet":
        return f"exit={observation.get('exit_code', 0)} {observation['stdout'][:800]} {observation['stderr'][:300]}"
    if action == "inspect_tensor":
        known = [name for name in ("min_val", "max_val", "mean_val") if observation.get(name) is not None]
        numbers = " ".join(f"{name}={observation[name]:.6f}" for name in known)
        marks = [mark for mark in ("is_nan", "is_inf") if observation.get(mark)]
        return f"{observation['shape']} {observation['dtype']} {numbers} {marks}"
    if action == "run_training_probe":
        flags = [observation.get("loss_is_nan"), observation.get("loss_is_inf")]
        return f"{len(observation['losses'][:10])} losses, last {observation['final_loss'] is not None}, {flags}"
    if action == "get_variable_state":
        states = list(observation["results"].items())[:8]
        return " ".join(f"{name}={(state.get('error') or str(state.get('repr')))[:50]}" for name, state in states)
    if action == "inspect_diff":
        return f"{observation['lines_changed']} (+{observation['additions']}/-{observation['deletions']})"
    return f"reward={observation.get('reward', 0.0):.4f}"


def agent_episode(base_url: str, task_id: str) -> dict[str, Any]:
    """Look around with every tool, compare, and submit the broken script."""
    agent = Agent(base_url)
    health = agent.get("/health")
    tasks = [task["id"] for task in agent.get("/tasks")["tasks"]]
    opened = agent.reset(task_id)
    broken = opened["buggy_code"]
    texts = [told(agent.step(dict(call))["observation"]) for call in CALLS]
    texts.append(
        told(agent.step({"action_type": "inspect_diff", "proposed_code": f"{broken}\n# end\n"})["observation"])
    )
    final = agent.step({"action_type": "submit_fix", "fixed_code": broken})
    texts.append(told(final["observation"]))
    return {
        "health": health,
        "tasks": tasks,
        "description": opened["task_description"][:100],
        "error_log": opened.get("error_log", "None"),
        "texts": texts,
        "reward": float(final.get("reward", 0) or 0),
        "done": final.get("done", False) or final["observation"].get("episode_done", False),
        "after": agent.step({"action_type": "submit_fix", "fixed_code": broken})["observation"]["error"],
    }


async def generic_episode(base_url: str, episode_id: str) -> dict[str, Any]:
    """Reset, steps and state through GenericEnvClient."""
    async with GenericEnvClient(base_url=base_url) as env:
        reset = await env.reset(task_id="task2", seed=3, episode_id=episode_id)
        first = await env.step({"action_type": "execute_snippet", "code": "a = 20"})
        second = await env.step({"action_type": "get_variable_state", "expressions": ["a * 2 + 2"]})
        state = await env.state()
        ended = await env.step({"action_type": "submit_fix", "fixed_code": ""})
    return {
        "task_id": reset.observation["task_id"],
        "rewards": [reset.reward, first.reward, second.reward, ended.reward],
        "done": [reset.done, first.done, second.done, ended.done],
        "value": second.observation["results"]["a * 2 + 2"]["value"],
        "state": state,
        "error": ended.observation["error"],
    }


async def tool_calls(base_url: str) -> dict[str, Any]:
    """The actions through MCPToolClient."""
    async with MCPToolClient(base_url=base_url) as env:
        await env.reset(task_id="task3")
        names = [tool.name for tool in await env.list_tools()]
        seen = await env.call_tool("inspect_tensor", setup_code=SETUP, target_expression="w.grad")
    return {"names": names, "task_id": seen["task_id"], "mean_val": seen["mean_val"]}
