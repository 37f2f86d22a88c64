"""Run client scenarios named on standard input, one JSON line each way.

Importing the published client takes seconds, so a test file keeps one of these
processes per client version and asks it for many scenarios. A request is
`{"scenario": "module.function", "base_url": …, "params": {…}}`; the reply is
`{"summary": …}` or `{"failure": <traceback>}`.
"""

from __future__ import annotations

import asyncio
import importlib
import inspect
import json
import os
import sys
import traceback
from typing import Any, TextIO


def perform(request: dict[str, Any]) -> dict[str, Any]:
    """Run one scenario to its end; whatever it raises becomes the reply."""
    try:
        module, _, function = request["scenario"].partition(".")
        scenario = getattr(importlib.import_module(module), function)
        summary = scenario(request["base_url"], **request["params"])
        if inspect.isawaitable(summary):
            summary = asyncio.run(settle(summary))
        return {"summary": summary}
    except Exception:
        return {"failure": traceback.format_exc()}


async def settle(summary: Any) -> Any:
    """Give `asyncio.run` the coroutine that it wants."""
    return await summary


def claim_replies() -> TextIO:
    """Keep standard output for replies; what a client prints goes to standard error."""
    replies = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)
    return replies


def main() -> None:
    """Answer requests until standard input closes."""
    replies = claim_replies()
    for line in sys.stdin:
        replies.write(json.dumps(perform(json.loads(line)), allow_nan=False) + "\n")
        replies.flush()


if __name__ == "__main__":
    main()
