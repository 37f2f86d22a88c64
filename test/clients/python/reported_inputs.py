"""Inputs that broke systems like this one, sent through the published client.

One function per report of `reports.md`; the assertions are in `reported-inputs.test.ts`.
"""

from __future__ import annotations

import asyncio
import json
import time
from typing import Any

from openenv.core.generic_client import GenericEnvClient
from repl_client import ReplClient
from summaries import summarise
from websockets.asyncio.client import connect


async def cells(base_url: str, reset: dict[str, Any], codes: list[str]) -> list[dict[str, Any]]:
    """One episode: its steps, each with the seconds the client waited for it."""
    async with GenericEnvClient(base_url=base_url) as env:
        await env.reset(**reset)
        steps = []
        for code in codes:
            started = time.perf_counter()
            step = summarise(await env.step({"code": code}))
            steps.append({**step, "waited_s": time.perf_counter() - started})
        return steps


async def bracketed_answers(base_url: str) -> list[dict[str, Any]]:
    """H1: answers with brackets, printed and returned, and one whose bracket never closes."""
    nested = await cells(base_url, {"expected_answer": "max(3, (4))"}, ['print("FINAL(max(3, (4)))")'])
    pair = await cells(base_url, {"expected_answer": "(1, 2)"}, ["print(FINAL((1, 2)))"])
    unclosed = await cells(base_url, {"expected_answer": "1"}, ['print("FINAL(1")'])
    return [*nested, *pair, *unclosed]


async def metadata_for_both_readers(base_url: str) -> dict[str, Any]:
    """H2: the same answer read inside the observation and on the result."""
    async with ReplClient(base_url=base_url) as old:
        reset = (await old.reset(context="ab", task_prompt="Length?")).observation.metadata
        nested = (await old.execute("print(FINAL(len(context)))")).observation.metadata
    async with GenericEnvClient(base_url=base_url) as new:
        results = [await new.reset(context="ab", task_prompt="Length?")]
        for code in ("x = 1", "1 / 0", "print(FINAL(len(context)))", "print('after the end')"):
            results.append(await new.step({"code": code}))
    return {"reset": reset, "nested": nested, "results": [result.metadata for result in results]}


async def syntax_error_after_print(base_url: str) -> list[dict[str, Any]]:
    """H3: a cell that doesn't parse, after one that printed."""
    return await cells(base_url, {}, ['print("one")', "x = = 1"])


async def sleeper_is_cut(base_url: str) -> list[dict[str, Any]]:
    """H4: a sleep far above the limit, then a step that must answer at once."""
    return await cells(base_url, {}, ["import time\ntime.sleep(30)", 'print("alive")'])


async def failing_cell_keeps_names(base_url: str) -> list[dict[str, Any]]:
    """H5: an exception on the fourth item, then the list that the cell was building."""
    loop = 'for i in range(5):\n    got.append(i)\n    if i == 3:\n        raise ValueError("boom")'
    return await cells(base_url, {}, [f'print("started")\ngot = []\n{loop}', "print(len(got))"])


async def reserved_names_come_back(base_url: str) -> list[dict[str, Any]]:
    """H6: helpers and context overwritten, then used."""
    overwrite = 'llm_query = None\ncontext = "gone"\nFINAL = 3'
    return await cells(
        base_url, {"context": "abcdef"}, [overwrite, 'print(len(context), callable(llm_query)); print(FINAL("ok"))']
    )


async def numbers_json_lacks(base_url: str) -> list[dict[str, Any]]:
    """H8: frames whose values are nan and inf, parsed by a strict parser."""

    def refuse(constant: str) -> Any:
        raise ValueError(f"{constant} is not JSON")

    observations = []
    async with connect(f"{base_url.replace('http', 'ws', 1)}/ws", proxy=None) as socket:
        await socket.send('{"type":"reset"}')
        json.loads(await socket.recv(), parse_constant=refuse)
        for code in ('float("nan")', '{"a": float("-inf")}', 'x = float("nan")\nprint(float("inf"))'):
            await socket.send(json.dumps({"type": "step", "data": {"code": code}}))
            observations.append(json.loads(await socket.recv(), parse_constant=refuse)["data"])
    return observations


async def memory_hogs(base_url: str) -> dict[str, Any]:
    """H9: one session takes all the memory it can get while another prints."""
    hogs = ["b = bytearray(6 * 1024**3)", 'L = []\nwhile True:\n    L.append("x" * 10**7)', 'print("back")']
    finished = asyncio.Event()

    async def neighbour() -> list[dict[str, Any]]:
        seen: list[dict[str, Any]] = []
        async with GenericEnvClient(base_url=base_url) as env:
            await env.reset()
            while not finished.is_set():
                step = await env.step({"code": f"kept = {len(seen)}\nprint(kept)"})
                seen.append({"wanted": str(len(seen)), "stdout": step.observation["result"]["stdout"].strip()})
                await asyncio.sleep(0.1)
        return seen

    neighbouring = asyncio.create_task(neighbour())
    steps = await cells(base_url, {}, hogs)
    finished.set()
    return {"hogs": steps, "neighbour": await neighbouring}


async def forged_reply_on_stdout(base_url: str) -> list[dict[str, Any]]:
    """H11: lines on the raw descriptor and on the original stream, then a normal step."""
    raw = 'import os, sys\nos.write(1, b\'{"id": 1, "ok": true}\\n\')'
    stream = 'sys.__stdout__.write("raw\\n"); sys.__stdout__.flush()\nprint("end")'
    return await cells(base_url, {}, [f"{raw}\n{stream}", 'print("next")'])
