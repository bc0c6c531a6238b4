"""The gRPC calls that go through Ray's proxy. Their messages stay bytes.

Ray picks a method of the deployment by the last part of a path, so names are unique across services.
Load reports out of band (xds.service.orca.v3) are not among them: behind a proxy a stream would tell of
one replica.
"""

UNARY = {
    "inference.GRPCInferenceService": (
        "ServerLive", "ServerReady", "ModelReady", "ServerMetadata", "ModelMetadata", "ModelInfer",
        "ModelConfig", "ModelStatistics", "RepositoryIndex", "RepositoryModelLoad", "RepositoryModelUnload",
        "SystemSharedMemoryStatus", "SystemSharedMemoryRegister", "SystemSharedMemoryUnregister",
        "CudaSharedMemoryStatus", "CudaSharedMemoryRegister", "CudaSharedMemoryUnregister",
        "TraceSetting", "LogSettings",
    ),
    "nvidia.inferenceserver.GRPCService": (
        "Status", "Profile", "Health", "Infer", "ModelControl", "SharedMemoryControl", "Repository",
    ),
    "grpc.health.v1.Health": ("Check",),
}  # fmt: skip
STREAMS = {
    "inference.GRPCInferenceService": ("ModelStreamInfer",),
    "nvidia.inferenceserver.GRPCService": ("StreamInfer", "InferStream"),
}
# What Ray's proxy reads, and what belongs to the connection of the client.
NOT_FORWARDED = {"application", "request_id", "multiplexed_model_id", "session_id", "user-agent"}


def paths(services):
    """The path of each method."""
    return {method: f"/{service}/{method}" for service, methods in services.items() for method in methods}


def forwarded_metadata(metadata):
    """What the server gets of a call's metadata."""
    return [(key, value) for key, value in metadata if key.lower() not in NOT_FORWARDED]


def add_inference_services(servicer, server):
    """For `grpc_servicer_functions` of Ray Serve. Handlers without (de)serializers pass bytes on."""
    import grpc

    kinds = ((UNARY, grpc.unary_unary_rpc_method_handler), (STREAMS, grpc.stream_stream_rpc_method_handler))
    for services, handler in kinds:
        for service, methods in services.items():
            # Ray puts its own functions into the handlers.
            handlers = {method: handler(getattr(servicer, method, None)) for method in methods}
            server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(service, handlers),))
