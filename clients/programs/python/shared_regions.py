"""Shared-memory regions for the inputs and outputs of `simple` and `simple_string`, registered with a server."""

import contextlib
import os

import numpy as np
import tensorrtserver.shared_memory as shm


@contextlib.contextmanager
def registered(control, inputs, output_size):
    """Handles of the regions of INPUT0, INPUT1, OUTPUT0 and OUTPUT1. `inputs` are the arrays to be written."""
    handles = {}
    # The process id keeps programs that run at once apart.
    # The server keeps a region until it is unregistered, the system until it is destroyed.
    with contextlib.ExitStack() as cleanup:
        for name, array in zip(("OUTPUT0", "OUTPUT1", "INPUT0", "INPUT1"), (None, None, *inputs)):
            size = output_size if array is None else array.size * array.itemsize
            key = name.lower()
            handle = shm.create_shared_memory_region(f"{key}_data", f"/{key}_simple_{os.getpid()}", size)
            cleanup.callback(shm.destroy_shared_memory_region, handle)
            if array is not None:
                shm.set_shared_memory_region(handle, [np.ascontiguousarray(array)])
            control.register(handle)
            cleanup.callback(control.unregister, handle)
            handles[name] = handle
        yield handles
        print(control.get_shared_memory_status())
