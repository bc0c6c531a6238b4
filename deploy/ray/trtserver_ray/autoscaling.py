"""How many replicas the queues of the servers ask for. Pure: Ray calls it, nothing here imports Ray."""

import math
import re

PENDING = "pending_requests"
WAIT = "predicted_wait_seconds"
SERIES = {
    PENDING: ("nv_inference_pending_request_count", sum),
    WAIT: ("trtserver_queue_wait_predicted_seconds", max),
}
# As for Kubernetes' autoscaler: a deviation up to this fraction of the target changes nothing.
TOLERANCE = 0.1


def load_of_page(page):
    """The load of one server, from its metrics page: waiting requests, and the longest predicted wait."""
    load = {}
    for name, (series, combine) in SERIES.items():
        values = re.findall(rf"^{series}(?:\{{[^}}]*\}})? (\S+)", page, re.M)
        load[name] = combine(map(float, values)) if values else 0.0
    return load


def replicas_for(current, values, target):
    """By the formula of Kubernetes' autoscaler: values of the replicas, and their target on average."""
    if not values or not current:
        return current
    ratio = sum(values) / len(values) / target
    return current if abs(ratio - 1.0) <= TOLERANCE else math.ceil(current * ratio)


class QueuePolicy:
    """A policy of Ray Serve. The measure that asks for the most replicas decides.

    Queues are empty until a server is full, so a target for the requests in progress keeps a reserve
    (docs/scale.md); it is Ray's own `target_ongoing_requests`. Ray applies the delays and limits of the
    configuration to the result.
    """

    def __init__(self, target_pending_requests=8.0, target_wait_seconds=0.005):
        for name, target in (
            ("target_pending_requests", target_pending_requests),
            ("target_wait_seconds", target_wait_seconds),
        ):
            if not target > 0:
                raise ValueError(f"{name} is {target}, expected a number above 0")
        self.targets = {PENDING: target_pending_requests, WAIT: target_wait_seconds}

    def __call__(self, context):
        current = context.current_num_replicas
        reported = context.aggregated_metrics or {}
        wanted = [
            replicas_for(current, list(reported.get(name, {}).values()), target)
            for name, target in self.targets.items()
        ]
        ongoing = getattr(context.config, "target_ongoing_requests", None)
        if ongoing and current:
            wanted.append(replicas_for(current, [context.total_num_requests / current], ongoing))
        elif not current:
            # No replica reports anything: a request that waits asks for the first.
            wanted.append(math.ceil(context.total_num_requests / (ongoing or 1)))
        return max(wanted), {}
