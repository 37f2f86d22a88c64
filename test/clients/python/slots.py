"""Slots as clients see them: a full server, peers that vanish, and slots that come back."""

from __future__ import annotations

import asyncio
import time
from contextlib import AsyncExitStack
from typing import Any

from openenv.core.generic_client import GenericEnvClient
from summaries import failure_of
from websockets.asyncio.client import ClientConnection


async def full(base_url: str, capacity: int) -> dict[str, Any]:
    """Fill every slot, be refused, give one back, be served."""
    async with AsyncExitStack() as stack:
        holders = [await stack.enter_async_context(GenericEnvClient(base_url=base_url)) for _ in range(capacity)]
        for holder in holders:
            await holder.reset()
        refused = GenericEnvClient(base_url=base_url)
        refusal = await failure_of(refused.reset())
        await refused.close()
        still_served = await holders[0].step({"code": "print('served')"})
        await holders[-1].close()
        attempts, text = await reset_until_served(base_url)
    return {
        "refusal": refusal,
        "still_served": still_served.observation["result"]["stdout"].strip(),
        "attempts_after_close": attempts,
        "after_close": text,
    }


async def vanish(base_url: str) -> dict[str, Any]:
    """Open two episodes; one peer stops answering anything, the other resets its TCP connection."""
    frozen, torn = GenericEnvClient(base_url=base_url), GenericEnvClient(base_url=base_url)
    for env in (frozen, torn):
        await env.reset()
        await env.step({"code": "held = bytearray(1000)"})
    refusal = await failure_of(GenericEnvClient(base_url=base_url).reset())
    # A peer that is suspended or unplugged: its socket stays, nothing is read, no pong is sent.
    connection_of(frozen).transport.pause_reading()
    connection_of(torn).transport.abort()
    attempts, text = await reset_until_served(base_url, slots=2)
    frozen_socket_open = not connection_of(frozen).transport.is_closing()
    connection_of(frozen).transport.abort()
    return {"refusal": refusal, "attempts": attempts, "served": text, "frozen_socket_open": frozen_socket_open}


async def vanish_in_a_step(base_url: str) -> dict[str, Any]:
    """Two peers are gone while their steps run; how long until both slots serve again."""
    running = []
    for _ in range(2):
        env = GenericEnvClient(base_url=base_url)
        await env.reset()
        await env.step({"code": "import time"})
        running.append((env, asyncio.create_task(failure_of(env.step({"code": "time.sleep(25)"})))))
    # One turn of the loop sends the frames before the connections are torn down.
    await asyncio.sleep(0.2)
    for env, _ in running:
        connection_of(env).transport.abort()
    failures = [await step for _, step in running]
    started = time.monotonic()
    _, text = await reset_until_served(base_url, slots=2)
    return {"failures": failures, "served": text, "waited_s": time.monotonic() - started}


def connection_of(env: GenericEnvClient) -> ClientConnection:
    """The socket inside the published client."""
    connection = env._ws
    assert connection is not None
    return connection


async def reset_until_served(base_url: str, slots: int = 1, patience_s: float = 20) -> tuple[int, str]:
    """Ask for `slots` episodes at once until all are served; how often that took, and what the last one printed."""
    give_up = time.monotonic() + patience_s
    attempts = 0
    while True:
        attempts += 1
        async with AsyncExitStack() as stack:
            try:
                for _ in range(slots):
                    env = await stack.enter_async_context(GenericEnvClient(base_url=base_url))
                    await env.reset()
                seen = await env.step({"code": "print('served')"})
                return attempts, str(seen.observation["result"]["stdout"]).strip()
            except Exception:
                if time.monotonic() > give_up:
                    raise
        await asyncio.sleep(0.05)
