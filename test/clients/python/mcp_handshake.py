"""A full client of the Model Context Protocol: the one that the published packages themselves install."""

from __future__ import annotations

from typing import Any

from fastmcp import Client
from fastmcp.exceptions import ToolError


async def tool_calls(base_url: str) -> dict[str, Any]:
    """Shake hands, list, keep an episode between calls, fail once, end the episode."""
    async with Client(f"{base_url}/mcp") as client:
        tools = await client.list_tools()
        await client.call_tool("execute", {"code": "n = 5"})
        shown = await client.call_tool("execute", {"code": "print(n + 1)"})
        try:
            refused = str(await client.call_tool("execute", {"colour": "red"}))
        except ToolError as error:
            refused = f"ToolError: {error}"
        ended = await client.call_tool("submit_final_answer", {"answer": "6"})
    return {
        "tools": [tool.name for tool in tools],
        "shown": shown.structured_content,
        "text": shown.content[0].text,
        "refused": refused,
        "ended": ended.structured_content,
    }
