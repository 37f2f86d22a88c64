"""Contexts far above the frame limit of the original server."""

from __future__ import annotations

from typing import Any

from openenv.core.generic_client import GenericEnvClient


async def context_of(base_url: str, megabytes: int) -> dict[str, Any]:
    """Reset with a context of so many million characters and let the worker look at both ends."""
    length = megabytes * 1_000_000
    context = "<" + "x" * (length - 2) + ">"
    async with GenericEnvClient(base_url=base_url) as env:
        reset = await env.reset(context=context)
        ends = await env.step({"code": "print(len(context), context[0], context[-1])"})
        again = await env.step({"code": "print(context.count('x'))"})
    return {
        "context_length": reset.observation["context_length"],
        "preview_length": len(reset.observation["context_preview"]),
        "ends": ends.observation["result"]["stdout"].strip(),
        "again": again.observation["result"]["stdout"].strip(),
    }


async def state_of(base_url: str, megabytes: int) -> int:
    """Length of the context that a state frame brings back."""
    async with GenericEnvClient(base_url=base_url) as env:
        await env.reset(context="y" * (megabytes * 1_000_000))
        return len((await env.state())["context"])
