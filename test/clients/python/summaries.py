"""Results of the published clients as plain JSON."""

from __future__ import annotations

from collections.abc import Awaitable
from typing import Any

import openenv.core.client_types as client_types


def summarise(result: client_types.StepResult[Any]) -> dict[str, Any]:
    """The fields of a step result; `metadata` only where this client version has it."""
    return dict(vars(result))


async def failure_of(call: Awaitable[Any]) -> str:
    """`<Type>: <message>` of what the call raises; `no failure` when it returns."""
    try:
        await call
    except Exception as failure:
        return f"{type(failure).__name__}: {failure}"
    return "no failure"
