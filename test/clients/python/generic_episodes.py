"""Episodes through GenericEnvClient: async, sync, side by side, and after errors."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from typing import Any

from openenv.core.generic_client import GenericEnvClient
from summaries import failure_of, summarise

EPISODE: dict[str, Any] = {
    "context": "hello",
    "task_prompt": "Count the characters.",
    "expected_answer": "5",
    "seed": 3,
}
CELLS = ["n = len(context)", "print(n + 1)", "print(FINAL(n))"]


async def async_episode(base_url: str, episode_id: str) -> dict[str, Any]:
    """Reset, three steps that build on each other, the state, and a close."""
    async with GenericEnvClient(base_url=base_url) as env:
        reset = await env.reset(episode_id=episode_id, **EPISODE)
        steps = [await env.step({"code": code}) for code in CELLS]
        state = await env.state()
    return {"reset": summarise(reset), "steps": [summarise(step) for step in steps], "state": state}


def sync_episode(base_url: str, episode_id: str) -> dict[str, Any]:
    """The same episode through the synchronous wrapper."""
    with GenericEnvClient(base_url=base_url).sync() as env:
        reset = env.reset(episode_id=episode_id, **EPISODE)
        steps = [env.step({"code": code}) for code in CELLS]
        state = env.state()
    return {"reset": summarise(reset), "steps": [summarise(step) for step in steps], "state": state}


async def side_by_side(base_url: str, clients: int) -> list[str]:
    """Every client binds its own number to the same name before any of them reads it back."""

    async def read(env: GenericEnvClient) -> str:
        seen = await env.step({"code": "print(mine, context)"})
        return str(seen.observation["result"]["stdout"]).strip()

    async with AsyncExitStack() as stack:
        envs = [await stack.enter_async_context(GenericEnvClient(base_url=base_url)) for _ in range(clients)]
        await asyncio.gather(*(env.reset(context=f"of {number}") for number, env in enumerate(envs)))
        await asyncio.gather(*(env.step({"code": f"mine = {number}"}) for number, env in enumerate(envs)))
        return list(await asyncio.gather(*(read(env) for env in envs)))


async def errors_then_work(base_url: str) -> dict[str, Any]:
    """Every error frame a client can provoke, each followed by proof that the socket still works."""
    async with GenericEnvClient(base_url=base_url) as env:
        early_step = await failure_of(env.step({"code": "1"}))
        early_state = await failure_of(env.state())
        await env.reset()
        await env.step({"code": "kept = 41"})
        unknown_key = await failure_of(env.step({"code": "kept = 0", "colour": "red"}))
        wrong_type = await failure_of(env.step({"code": 7}))
        wrong_reset = await failure_of(env.reset(episode_id=5))
        exit_step = await env.step({"code": "raise SystemExit(3)"})
        after = await env.step({"code": "print(kept + 1)"})
        state = await env.state()
        await env.reset()
        fresh = await env.step({"code": "print('kept' in globals())"})
    return {
        "early_step": early_step,
        "early_state": early_state,
        "unknown_key": unknown_key,
        "wrong_type": wrong_type,
        "wrong_reset": wrong_reset,
        "exit_step": summarise(exit_step),
        "after": summarise(after),
        "step_count": state["step_count"],
        "fresh": summarise(fresh),
    }
