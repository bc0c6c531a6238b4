//! v1 over gRPC: `nvidia.inferenceserver.GRPCService` (contract/v1 §4).
