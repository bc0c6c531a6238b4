"""Clients of a demonstration: requests at a given rate over HTTP and gRPC, and what became of each.

The rate does not depend on the answers (open loop), so that a server that is slow gets no fewer
requests, and the time that requests wait for it is seen.
"""

import asyncio
import itertools
import random
import ssl
import threading
import time
from pathlib import Path
from typing import NamedTuple

import grpc
import grpc.aio
from calls import Call
from proxy import SERVER_HEADER

TIMEOUT = 60


class Outcome(NamedTuple):
    call: Call
    # Of the monotonic clock.
    sent: float
    ended: float
    # None, or what went wrong.
    failure: str | None
    # `address:port` of the server that Envoy chose last.
    server: str
    answer: bytes

    @property
    def took(self):
        return self.ended - self.sent


class HttpConnections:
    """Connections that stay open; one for each request at a time."""

    def __init__(self, address, port, tls):
        self.address, self.port, self.tls, self.idle = address, port, tls, []

    async def send(self, call):
        """The status, headers and body."""
        streams = self.idle.pop() if self.idle else await asyncio.open_connection(
            self.address, self.port, ssl=self.tls, server_hostname="localhost" if self.tls else None
        )
        reader, writer = streams
        try:
            lines = [f"{call.method} {call.path} HTTP/1.1", "host: trtserver", f"content-length: {len(call.body)}"]
            lines += [f"{name}: {value}" for name, value in call.headers]
            writer.write("\r\n".join([*lines, "", ""]).encode() + call.body)
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            headers = dict(line.lower().split(": ", 1) for line in head[1:] if ": " in line)
            body = await reader.readexactly(int(headers.get("content-length", 0)))
        except BaseException:
            writer.close()
            raise
        if headers.get("connection") == "close":
            writer.close()
        else:
            self.idle.append(streams)
        return int(head[0].split()[1]), headers, body

    def close(self):
        for _, writer in self.idle:
            writer.close()


class Client:
    """Connections over both protocols. `authority` is the PEM file of the authority for TLS."""

    def __init__(self, address, port, authority=None):
        tls = ssl.create_default_context(cafile=authority) if authority else None
        self.http, self.open = HttpConnections(address, port, tls), 0
        target = f"{address}:{port}"
        if authority:
            credentials = grpc.ssl_channel_credentials(Path(authority).read_bytes())
            options = [("grpc.ssl_target_name_override", "localhost")]
            self.channel = grpc.aio.secure_channel(target, credentials, options)
        else:
            self.channel = grpc.aio.insecure_channel(target)

    async def close(self):
        self.http.close()
        await self.channel.close()

    async def send(self, call):
        sent = time.monotonic()
        self.open += 1
        try:
            send = self.send_http if call.protocol == "http" else self.send_grpc
            failure, server, answer = await asyncio.wait_for(send(call), TIMEOUT)
        except (OSError, EOFError, TimeoutError) as error:
            failure, server, answer = repr(error), "", b""
        finally:
            self.open -= 1
        return Outcome(call, sent, time.monotonic(), failure, server, answer)

    async def send_http(self, call):
        status, headers, body = await self.http.send(call)
        failure = None if status == 200 else f"HTTP {status} {headers.get('nv-status', '')} {body[:150]}"
        return failure, headers.get(SERVER_HEADER, ""), body

    async def send_grpc(self, call):
        running = self.channel.unary_unary(call.path)(call.body, metadata=call.headers)
        try:
            answer = await running
            headers = await running.initial_metadata()
            return None, dict(headers).get(SERVER_HEADER, ""), answer
        except grpc.aio.AioRpcError as error:
            headers = dict(error.initial_metadata() or ()) | dict(error.trailing_metadata() or ())
            return f"gRPC {error.code().name} {error.details()}"[:150], headers.get(SERVER_HEADER, ""), b""


class Load(threading.Thread):
    """Sends `calls` in turn, `rate` a second at random times, until it is stopped."""

    def __init__(self, address, port, calls, rate):
        super().__init__(daemon=True)
        self.address, self.port, self.calls, self.rate = address, port, calls, rate
        self.ended, self.outcomes, self.client = threading.Event(), [], None
        self.random = random.Random(1)

    def run(self):
        asyncio.run(self.send_all())

    def stop(self):
        """Waits for what is open. All outcomes, by the time when requests were sent."""
        self.ended.set()
        self.join(TIMEOUT + 10)
        return sorted(self.outcomes, key=lambda outcome: outcome.sent)

    @property
    def open(self):
        """Requests that are not answered yet."""
        return self.client.open if self.client else 0

    async def send_all(self):
        self.client = Client(self.address, self.port)
        tasks, next_at = set(), time.monotonic()
        for call in itertools.cycle(self.calls):
            if self.ended.is_set():
                break
            task = asyncio.create_task(self.send(call))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            next_at += self.random.expovariate(self.rate)
            await asyncio.sleep(max(0, next_at - time.monotonic()))
        await asyncio.gather(*tasks)
        await self.client.close()

    async def send(self, call):
        self.outcomes.append(await self.client.send(call))
