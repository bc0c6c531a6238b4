"""An ASGI application that forwards requests to the server's Unix socket. Bodies stay bytes."""

from .http_rules import forwarded_headers, forwarded_target

# Bodies arrive in pieces of at most this size.
PIECE = 1 << 20
# Below the server's --idle-timeout-secs, so that no request goes out on a connection that is closing.
KEEP_ALIVE_SECS = 60


class HttpForwarder:
    """Answers what the server answers, with status, headers and body as they are."""

    def __init__(self, path):
        self.path, self.session = str(path), None

    def connections(self):
        """Made on first use, for the event loop that serves requests."""
        import aiohttp

        if self.session is None:
            self.session = aiohttp.ClientSession(
                connector=aiohttp.UnixConnector(self.path, limit=0, keepalive_timeout=KEEP_ALIVE_SECS),
                auto_decompress=False,
                cookie_jar=aiohttp.DummyCookieJar(),
                # The server and the client have timeouts; this one would cut long streams.
                timeout=aiohttp.ClientTimeout(total=None),
                read_bufsize=PIECE,
                max_line_size=1 << 16,
                max_field_size=1 << 16,
                skip_auto_headers=("User-Agent", "Content-Type", "Accept", "Accept-Encoding"),
            )
        return self.session

    async def __call__(self, scope, receive, send):
        if scope["type"] == "lifespan":
            return await answer_lifespan(receive, send)
        if scope["type"] != "http":
            raise RuntimeError(f"cannot forward {scope['type']}: the server speaks HTTP")
        import yarl

        headers = [(text_of(name), text_of(value)) for name, value in forwarded_headers(scope["headers"])]
        url = yarl.URL("http://localhost" + forwarded_target(scope), encoded=True)
        first = await receive()
        body = first.get("body", b"")
        if first.get("more_body", False):
            body = pieces_of(first, receive)
        elif not body and "content-length" not in {name.lower() for name, _ in headers}:
            body = None
        request = self.connections().request(
            scope["method"], url, headers=headers, data=body, allow_redirects=False
        )
        async with request as response:
            await send({
                "type": "http.response.start",
                "status": response.status,
                "headers": forwarded_headers(response.raw_headers),
            })  # fmt: skip
            async for piece in response.content.iter_any():
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b""})

    async def close(self):
        if self.session is not None:
            await self.session.close()


def text_of(field):
    """What aiohttp writes as the bytes that came, as long as they are UTF-8."""
    try:
        return field.decode()
    except UnicodeDecodeError:
        return field.decode("latin-1")


async def pieces_of(message, receive):
    """The rest of a body."""
    while message["type"] == "http.request":
        if message.get("body"):
            yield message["body"]
        if not message.get("more_body", False):
            return
        message = await receive()
    raise ConnectionResetError("the client left before its request was complete")


async def answer_lifespan(receive, send):
    while True:
        message = await receive()
        await send({"type": message["type"] + ".complete"})
        if message["type"] == "lifespan.shutdown":
            return
