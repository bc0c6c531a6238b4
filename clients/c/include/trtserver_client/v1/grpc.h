// Contexts of the v1 C++ client over gRPC, with one call for each request or one stream for all.
// C++11.
//
// SPDX-License-Identifier: Apache-2.0
#ifndef TRTSERVER_CLIENT_V1_GRPC_H
#define TRTSERVER_CLIENT_V1_GRPC_H

#include <memory>
#include <string>

#include "infer.h"
#include "server.h"

namespace nvidia {
namespace inferenceserver {
namespace client {

class ServerHealthGrpcContext {
 public:
  static Error Create(std::unique_ptr<ServerHealthContext>* ctx, const std::string& server_url, bool verbose = false) {
    return detail::Create<detail::HealthImpl>(ctx,
                                              detail::Settings(TRTC_GRPC, server_url, detail::Headers(), verbose));
  }
};

class ServerStatusGrpcContext {
 public:
  static Error Create(std::unique_ptr<ServerStatusContext>* ctx, const std::string& server_url, bool verbose = false) {
    return Create(ctx, server_url, std::string(), verbose);
  }
  static Error Create(std::unique_ptr<ServerStatusContext>* ctx, const std::string& server_url,
                      const std::string& model_name, bool verbose = false) {
    return detail::Create<detail::StatusImpl>(
        ctx, detail::Settings(TRTC_GRPC, server_url, detail::Headers(), verbose), model_name);
  }
};

class ModelRepositoryGrpcContext {
 public:
  static Error Create(std::unique_ptr<ModelRepositoryContext>* ctx, const std::string& server_url,
                      bool verbose = false) {
    return detail::Create<detail::RepositoryImpl>(
        ctx, detail::Settings(TRTC_GRPC, server_url, detail::Headers(), verbose));
  }
};

class ModelControlGrpcContext {
 public:
  static Error Create(std::unique_ptr<ModelControlContext>* ctx, const std::string& server_url, bool verbose = false) {
    return detail::Create<detail::ControlImpl>(ctx,
                                               detail::Settings(TRTC_GRPC, server_url, detail::Headers(), verbose));
  }
};

class SharedMemoryControlGrpcContext {
 public:
  static Error Create(std::unique_ptr<SharedMemoryControlContext>* ctx, const std::string& server_url,
                      bool verbose = false) {
    return detail::Create<detail::MemoryImpl>(ctx,
                                              detail::Settings(TRTC_GRPC, server_url, detail::Headers(), verbose));
  }
};

class ProfileGrpcContext {
 public:
  static Error Create(std::unique_ptr<ProfileContext>* ctx, const std::string& server_url, bool verbose = false) {
    return detail::Create<detail::ProfileImpl>(ctx,
                                               detail::Settings(TRTC_GRPC, server_url, detail::Headers(), verbose));
  }
};

// The correlation id is that of a sequence, 0 for none; version -1 is the latest.
class InferGrpcContext {
 public:
  static Error Create(std::unique_ptr<InferContext>* ctx, const std::string& server_url, const std::string& model_name,
                      int64_t model_version = -1, bool verbose = false) {
    return Create(ctx, 0, server_url, model_name, model_version, verbose);
  }
  static Error Create(std::unique_ptr<InferContext>* ctx, CorrelationID correlation_id, const std::string& server_url,
                      const std::string& model_name, int64_t model_version = -1, bool verbose = false) {
    return detail::CreateInfer(ctx, detail::Settings(TRTC_GRPC, server_url, detail::Headers(), verbose),
                               correlation_id, model_name, model_version, true, false);
  }
};

// All requests of the context go over one stream.
class InferGrpcStreamContext {
 public:
  static Error Create(std::unique_ptr<InferContext>* ctx, const std::string& server_url, const std::string& model_name,
                      int64_t model_version = -1, bool verbose = false) {
    return Create(ctx, 0, server_url, model_name, model_version, verbose);
  }
  static Error Create(std::unique_ptr<InferContext>* ctx, CorrelationID correlation_id, const std::string& server_url,
                      const std::string& model_name, int64_t model_version = -1, bool verbose = false) {
    return detail::CreateInfer(ctx, detail::Settings(TRTC_GRPC, server_url, detail::Headers(), verbose),
                               correlation_id, model_name, model_version, true, true);
  }
};

}  // namespace client
}  // namespace inferenceserver
}  // namespace nvidia

#endif
