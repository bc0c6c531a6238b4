"""Network namespaces as hosts, and links between them with latency, loss, a rate, or a cut.

A link is two TUN devices, one in the namespace of this process and one in that of the host; this
process passes packets from one to the other. `tc netem` would do the same within the kernel, but many
kernels are built without it. Namespaces end with the processes in them.
"""

import ctypes
import fcntl
import heapq
import os
import random
import select
import struct
import subprocess
import threading
import time

CLONE_NEWNET = 0x40000000
TUNSETIFF, IFF_TUN, IFF_NO_PI = 0x400454CA, 0x0001, 0x1000
# Bytes that wait for a slow link; what is beyond them is dropped, as in a router.
BUFFER = 64 * 1024


def enter_new_namespace():
    """Gives this process, with threads that it starts later, a network of its own. A reason if it cannot."""
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET):
        return f"network namespaces are not permitted here: {os.strerror(ctypes.get_errno())} (run as root)"
    if not os.access("/dev/net/tun", os.R_OK | os.W_OK):
        return "/dev/net/tun is missing or not permitted: links between namespaces need it"
    subprocess.run(["ip", "link", "set", "lo", "up"], check=True)
    return None


def open_tun(name):
    descriptor = os.open("/dev/net/tun", os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(descriptor, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TUN | IFF_NO_PI))
    return descriptor


class Direction:
    """One direction of a link: when a packet arrives, or that it does not. Pure but for the random numbers."""

    def __init__(self, seed):
        self.delay_s, self.loss, self.bytes_per_s, self.cut = 0.0, 0.0, None, False
        self.random, self.free_at = random.Random(seed), 0.0

    def arrival(self, now, size):
        """The time of arrival, or None if the packet is lost."""
        if self.cut or self.random.random() < self.loss:
            return None
        if not self.bytes_per_s:
            return now + self.delay_s
        begin = max(now, self.free_at)
        if (begin - now) * self.bytes_per_s > BUFFER:
            return None
        self.free_at = begin + size / self.bytes_per_s
        return self.free_at + self.delay_s


class Host:
    """A namespace with a link to that of this process: 10.77.NUMBER.2, here 10.77.NUMBER.1."""

    def __init__(self, number):
        self.holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
        self.prefix = ("nsenter", f"--net=/proc/{self.holder.pid}/ns/net")
        own = os.readlink("/proc/self/ns/net")
        while os.readlink(f"/proc/{self.holder.pid}/ns/net") == own:
            time.sleep(0.01)
        self.address, self.near = f"10.77.{number}.2", f"10.77.{number}.1"
        here, there = f"here{number}", f"there{number}"
        self.ends = [open_tun(here), open_tun(there)]
        self.directions = [Direction(2 * number), Direction(2 * number + 1)]
        ip = ["ip"]
        subprocess.run([*ip, "link", "set", there, "netns", str(self.holder.pid)], check=True)
        for prefix, device, address in ((ip, here, self.near), ([*self.prefix, *ip], there, self.address)):
            subprocess.run([*prefix, "addr", "add", f"{address}/24", "dev", device], check=True)
            subprocess.run([*prefix, "link", "set", device, "up"], check=True)
        subprocess.run([*self.prefix, *ip, "link", "set", "lo", "up"], check=True)
        self.ended = threading.Event()
        self.carrier = threading.Thread(target=self.carry, daemon=True)
        self.carrier.start()

    def set(self, delay_ms=0, loss=0.0, bytes_per_s=None, cut=False):
        """Both directions."""
        for direction in self.directions:
            direction.delay_s, direction.loss = delay_ms / 1e3, loss
            direction.bytes_per_s, direction.cut = bytes_per_s, cut

    def carry(self):
        due, number = [], 0
        while not self.ended.is_set():
            pause = min(0.2, max(0.0, due[0][0] - time.monotonic())) if due else 0.2
            for end in select.select(self.ends, [], [], pause)[0]:
                side = self.ends.index(end)
                packet = os.read(end, 65536)
                at = self.directions[side].arrival(time.monotonic(), len(packet))
                if at is not None:
                    number += 1
                    heapq.heappush(due, (at, number, self.ends[1 - side], packet))
            while due and due[0][0] <= time.monotonic():
                _, _, end, packet = heapq.heappop(due)
                try:
                    os.write(end, packet)
                except OSError:
                    # The device is down or its queue is full: the packet is lost.
                    pass

    def end(self):
        self.ended.set()
        self.carrier.join()
        for end in self.ends:
            os.close(end)
        self.holder.kill()
        self.holder.wait()
