"""Episodes through the typed REPL client, in both ways of reading metadata."""

from __future__ import annotations

from typing import Any

from repl_client import ReplClient, TopMetadataReplClient

READERS = {"nested": ReplClient, "top": TopMetadataReplClient}


async def metadata_reaches(base_url: str, reader: str) -> dict[str, Any]:
    """The metadata of a reset, an ordinary step and a final one."""
    async with READERS[reader](base_url=base_url) as env:
        reset = await env.reset(context="ab", task_prompt="How long is it?")
        ordinary = await env.execute("x = 1")
        final = await env.execute("print(FINAL(len(context)))")
    return {
        "reset": reset.observation.metadata,
        "ordinary": ordinary.observation.metadata,
        "final": final.observation.metadata,
        "done": final.done,
    }


async def convenience_calls(base_url: str) -> dict[str, Any]:
    """What the calls beside reset and step bring: a variable, the names, an answer."""
    async with ReplClient(base_url=base_url) as env:
        await env.reset(context="abc", task_prompt="Say it.", expected_answer="  ABC ", max_iterations=30)
        await env.execute("word = context.upper()")
        variable = await env.get_variable("word")
        names = await env.list_variables()
        submitted = await env.submit_final_answer("abc")
        state = await env.state()
    return {
        "variable": variable.observation.result.stdout,
        "names": names,
        "submitted": submitted.observation.model_dump(),
        "reward": submitted.reward,
        "done": submitted.done,
        "state": state.model_dump(),
    }
