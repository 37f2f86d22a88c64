/** What OpenAPI can't describe: the WebSockets, in words. */

export const SOCKET_DESCRIPTION = `## WebSocket \`/ws\`

One socket is one session; text frames, answered strictly in order.

| client frame | reply |
|---|---|
| \`{"type":"reset","data":{…}}\` | \`{"type":"observation","data":{"observation","reward","done","metadata"}}\` |
| \`{"type":"step","data":{<action fields>}}\` | the same |
| \`{"type":"state"}\` | \`{"type":"state","data":{…}}\` |
| \`{"type":"mcp","data":{<JSON-RPC request>}}\` | \`{"type":"mcp","data":{<JSON-RPC response>}}\` |
| \`{"type":"close"}\` | none; the socket closes with 1000 |

Errors are \`{"type":"error","data":{"message","code",…}}\` with one of the codes INVALID_JSON, UNKNOWN_TYPE,
VALIDATION_ERROR, EXECUTION_ERROR (the socket stays open), CAPACITY_REACHED, FACTORY_ERROR, SESSION_ERROR (it closes).

\`/ws?session_id=…\` attaches to a session that \`openenv/session/create\` opened over \`/mcp\`.

## WebSocket \`/mcp\`

JSON-RPC 2.0 requests and responses, one text frame each, on a session of the socket's own.`
