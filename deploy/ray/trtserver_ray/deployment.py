"""The deployment: each replica owns one server process, and forwards HTTP and gRPC to it."""

import asyncio
import os
import sys

from pydantic import BaseModel, ConfigDict
from ray import serve

from .autoscaling import load_of_page
from .grpc_forwarding import GrpcForwarder, forward_methods
from .http_forwarding import HttpForwarder
from .server_process import ServerProcess, seconds_to_end


class ServerOptions(BaseModel):
    """`args` of the application in Serve's configuration."""

    model_config = ConfigDict(extra="forbid", protected_namespaces=())

    model_repository: str
    # On each node: from the wheel, or a path.
    program: str = "trtserver"
    arguments: list[str] = []
    # Ray sends a replica that ends no more requests and waits for those in progress before it stops the
    # server, so that the delay covers only what is on its way.
    drain_delay_secs: int = 1
    exit_timeout_secs: int = 30
    start_timeout_secs: int = 600


def end_replica(status):
    """Ray notices the end of a process at once, and failed health checks only after some periods."""
    print(f"trtserver ended with status {status}: its replica ends, Ray starts another", file=sys.stderr, flush=True)
    os._exit(1)


# The server queues and batches, so Ray holds no request back. By default it would beyond five.
@serve.deployment(name="trtserver", max_ongoing_requests=1000, health_check_period_s=5)
@serve.ingress()
@forward_methods
class TrtServer:
    """One replica."""

    async def __init__(self, options: dict):
        # In this thread: the server is killed with the thread that made it, and others may end earlier.
        self.server = ServerProcess(options, end_replica)
        await asyncio.to_thread(self.server.wait_ready)
        self.http = HttpForwarder(self.server.sockets["http"])
        self.grpc = GrpcForwarder(self.server.sockets["grpc"])

    def __serve_build_asgi_app__(self):
        return self.http

    async def check_health(self):
        await asyncio.to_thread(self.server.check_ready)

    async def record_autoscaling_stats(self):
        _, page = await asyncio.to_thread(self.server.ask, "/metrics", "metrics")
        return load_of_page(page)

    async def __del__(self):
        # The constructor may have failed.
        server = getattr(self, "server", None)
        if server is not None and not server.stopped:
            await asyncio.to_thread(server.stop)
            for forwarder in (self.http, self.grpc):
                await forwarder.close()


def application(options: ServerOptions) -> serve.Application:
    """`import_path` of Serve's configuration."""
    made = options.model_dump()
    # Ray kills a replica after this time. Behind HAProxy it keeps one for 30 s before it ends the server.
    return TrtServer.options(graceful_shutdown_timeout_s=seconds_to_end(made) + 40).bind(made)
