"""Episodes over plain HTTP, through the two HTTP clients that OpenEnv itself brings along."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import httpx
import requests


def requests_episode(base_url: str, episode_id: str) -> dict[str, Any]:
    """Reset with a given id, then steps that name it in the body, each on a connection of its own."""
    reset = requests.post(f"{base_url}/reset", json={"context": "hello", "episode_id": episode_id}, timeout=30)
    steps = [
        requests.post(
            f"{base_url}/step", json={"action": {"code": code}, "episode_id": episode_id, "timeout_s": 10}, timeout=30
        )
        for code in ("n = len(context)", "print(n + 1)", "print(FINAL(n))")
    ]
    state = requests.get(f"{base_url}/state", params={"episode_id": episode_id}, timeout=30)
    closed = requests.delete(f"{base_url}/episodes/{quote(episode_id, safe='')}", timeout=30)
    gone = requests.post(f"{base_url}/step", json={"action": {"code": "1"}, "episode_id": episode_id}, timeout=30)
    return {
        "statuses": [reply.status_code for reply in (reset, *steps, state, closed, gone)],
        "reset": reset.json(),
        "steps": [step.json() for step in steps],
        "state": state.json(),
    }


async def httpx_episodes(base_url: str) -> dict[str, Any]:
    """Two interleaved episodes on one keep-alive client, each named by the id its reset brought."""
    async with httpx.AsyncClient(base_url=base_url, timeout=30) as client:
        # Requests to absolute paths would lose the prefix of the base URL, so paths are relative.
        resets = [(await client.post("reset", json={"context": text})).json() for text in ("one", "three")]
        ids = [reset["metadata"]["episode_id"] for reset in resets]

        async def step(episode_id: str, code: str) -> Any:
            body = {"action": {"code": code}, "episode_id": episode_id}
            return (await client.post("step", json=body)).json()

        for episode_id in ids:
            await step(episode_id, "n = len(context)")
        texts = [(await step(episode_id, "print(n)"))["observation"]["result"]["stdout"] for episode_id in ids]
        for episode_id in ids:
            await client.delete(f"episodes/{episode_id}")
    return {"ids": ids, "texts": texts}


def defaults_and_refusals(base_url: str) -> dict[str, Any]:
    """What clients rely on beside episodes: defaults of a reset and the shape of refusals."""
    bare = requests.post(f"{base_url}/reset", timeout=30)
    bare_id = bare.json()["metadata"]["episode_id"]
    bad_seed = requests.post(f"{base_url}/reset", json={"seed": -1}, timeout=30)
    bad_action = requests.post(f"{base_url}/step", json={"action": {"code": 5}, "episode_id": bare_id}, timeout=30)
    no_action = requests.post(f"{base_url}/step", json={"episode_id": bare_id}, timeout=30)
    requests.delete(f"{base_url}/episodes/{bare_id}", timeout=30)
    health = requests.get(f"{base_url}/health", timeout=30)
    return {
        "bare": bare.status_code,
        "health": health.json(),
        "refusals": [refusal_of(reply) for reply in (bad_seed, bad_action, no_action)],
    }


def refusal_of(reply: requests.Response) -> dict[str, Any]:
    """Status, and type and place of the first fault."""
    fault = reply.json()["detail"][0]
    return {"status": reply.status_code, "type": fault["type"], "loc": fault["loc"]}
