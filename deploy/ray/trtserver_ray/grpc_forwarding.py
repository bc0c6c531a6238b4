"""Forwards gRPC calls to the server's Unix socket. Messages stay bytes."""

from .grpc_methods import STREAMS, UNARY, forwarded_metadata, paths


class RawMessage:
    """Ray asks a result for its bytes; this one has them already."""

    def __init__(self, payload):
        self.payload = payload

    def SerializeToString(self):
        return self.payload


class GrpcForwarder:
    """One channel to the server."""

    def __init__(self, path):
        self.path, self.channel, self.calls = path, None, {}

    def call(self, path, kind):
        """Made on first use, for the event loop that serves requests."""
        import grpc.aio

        if self.channel is None:
            # The server has limits of its own.
            unlimited = [(f"grpc.max_{way}_message_length", -1) for way in ("send", "receive")]
            self.channel = grpc.aio.insecure_channel(f"unix:{self.path}", options=unlimited)
        if path not in self.calls:
            self.calls[path] = getattr(self.channel, kind)(path)
        return self.calls[path]

    async def unary(self, path, request, context):
        import grpc

        call = self.call(path, "unary_unary")(request, metadata=forwarded_metadata(context.invocation_metadata()))
        try:
            answer = await call
        except grpc.aio.AioRpcError as error:
            # Raised errors are logged with a traceback; a status is enough.
            answer = b""
            context.set_code(error.code())
            context.set_details(error.details())
        add_trailers(context, await call.trailing_metadata())
        return RawMessage(answer)

    async def stream(self, path, requests, context):
        import grpc

        call = self.call(path, "stream_stream")(
            requests, metadata=forwarded_metadata(context.invocation_metadata())
        )
        try:
            async for answer in call:
                yield RawMessage(answer)
        except grpc.aio.AioRpcError as error:
            # Ray takes the status of a stream without messages from the error alone.
            context.set_code(error.code())
            context.set_details(error.details())
            raise
        finally:
            call.cancel()

    async def close(self):
        if self.channel is not None:
            await self.channel.close()


def add_trailers(context, trailers):
    """Beside those that Ray sends, e.g. load reports."""
    if trailers:
        context.set_trailing_metadata([*context.trailing_metadata(), *((t[0], t[1]) for t in trailers)])


def forward_methods(cls):
    """Gives a deployment class a method for each call, which uses its `grpc`."""

    def unary(path):
        async def forward(self, request: bytes, grpc_context):
            return await self.grpc.unary(path, request, grpc_context)

        return forward

    def stream(path):
        async def forward(self, requests, grpc_context):
            async for answer in self.grpc.stream(path, requests, grpc_context):
                yield answer

        return forward

    for services, make in ((UNARY, unary), (STREAMS, stream)):
        for method, path in paths(services).items():
            forward = make(path)
            forward.__name__ = method
            setattr(cls, method, forward)
    return cls
