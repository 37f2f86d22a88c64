"""Episodes through MCPToolClient, in the mode a user gets by default and in both modes explicitly."""

from __future__ import annotations

from typing import Any

from openenv.core.mcp_client import MCPToolClient
from summaries import failure_of


async def tool_calls(base_url: str, production: bool | None) -> dict[str, Any]:
    """Reset, discover, call twice, fail once, submit. `production` None leaves the mode alone."""
    client = MCPToolClient(base_url=base_url)
    if production is not None:
        client.use_production_mode = production
    async with client as env:
        await env.reset(context="hello")
        tools = await env.list_tools()
        await env.call_tool("execute", code="n = 5")
        shown = await env.call_tool("execute", code="print(n + 1)")
        unknown = await failure_of(env.call_tool("no_such_tool", code="1"))
        wrong = await failure_of(env.call_tool("execute", colour="red"))
        raised = await env.call_tool("execute", code="1 / 0")
        after = await env.call_tool("execute", code="print(n)")
        ended = await env.call_tool("submit_final_answer", answer="6")
        has = await env.has_tool("submit_final_answer")
    return {
        "tools": {tool.name: tool.input_schema for tool in tools},
        "shown": shown,
        "unknown": unknown,
        "wrong": wrong,
        "raised": raised,
        "after": after,
        "ended": ended,
        "has": has,
    }


def synchronous(base_url: str) -> dict[str, Any]:
    """Discovery and one call through the synchronous wrapper."""
    with MCPToolClient(base_url=base_url).sync() as env:
        env.reset()
        return {"tools": [tool.name for tool in env.list_tools()], "shown": env.call_tool("execute", code="print(2)")}


async def shared_session(base_url: str) -> dict[str, Any]:
    """openenv 0.10: the socket and the HTTP calls of one client mean the same episode."""
    async with MCPToolClient(base_url=base_url) as env:
        reset = await env.reset(context="hello", episode_id="shared-1")
        await env.call_tool("execute", code="n = len(context)")
        state = await env.state()
        shown = await env.call_tool("execute", code="print(n)")
        return {"reset": reset.metadata, "state": state.model_dump(), "shown": shown}
