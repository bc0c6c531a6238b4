// Contexts of the v1 C++ client over HTTP. Headers are sent with every request. C++11.
//
// SPDX-License-Identifier: Apache-2.0
#ifndef TRTSERVER_CLIENT_V1_HTTP_H
#define TRTSERVER_CLIENT_V1_HTTP_H

#include <map>
#include <memory>
#include <string>

#include "infer.h"
#include "server.h"

namespace nvidia {
namespace inferenceserver {
namespace client {

class ServerHealthHttpContext {
 public:
  static Error Create(std::unique_ptr<ServerHealthContext>* ctx, const std::string& server_url, bool verbose = false) {
    return Create(ctx, server_url, detail::Headers(), verbose);
  }
  static Error Create(std::unique_ptr<ServerHealthContext>* ctx, const std::string& server_url,
                      const std::map<std::string, std::string>& headers, bool verbose = false) {
    return detail::Create<detail::HealthImpl>(ctx, detail::Settings(TRTC_HTTP, server_url, headers, verbose));
  }
};

class ServerStatusHttpContext {
 public:
  static Error Create(std::unique_ptr<ServerStatusContext>* ctx, const std::string& server_url, bool verbose = false) {
    return Create(ctx, server_url, detail::Headers(), verbose);
  }
  static Error Create(std::unique_ptr<ServerStatusContext>* ctx, const std::string& server_url,
                      const std::map<std::string, std::string>& headers, bool verbose = false) {
    return Create(ctx, server_url, headers, std::string(), verbose);
  }
  static Error Create(std::unique_ptr<ServerStatusContext>* ctx, const std::string& server_url,
                      const std::string& model_name, bool verbose = false) {
    return Create(ctx, server_url, detail::Headers(), model_name, verbose);
  }
  static Error Create(std::unique_ptr<ServerStatusContext>* ctx, const std::string& server_url,
                      const std::map<std::string, std::string>& headers, const std::string& model_name,
                      bool verbose = false) {
    return detail::Create<detail::StatusImpl>(ctx, detail::Settings(TRTC_HTTP, server_url, headers, verbose),
                                              model_name);
  }
};

class ModelRepositoryHttpContext {
 public:
  static Error Create(std::unique_ptr<ModelRepositoryContext>* ctx, const std::string& server_url,
                      bool verbose = false) {
    return Create(ctx, server_url, detail::Headers(), verbose);
  }
  static Error Create(std::unique_ptr<ModelRepositoryContext>* ctx, const std::string& server_url,
                      const std::map<std::string, std::string>& headers, bool verbose = false) {
    return detail::Create<detail::RepositoryImpl>(ctx, detail::Settings(TRTC_HTTP, server_url, headers, verbose));
  }
};

class ModelControlHttpContext {
 public:
  static Error Create(std::unique_ptr<ModelControlContext>* ctx, const std::string& server_url,
                      const std::map<std::string, std::string>& headers, bool verbose = false) {
    return detail::Create<detail::ControlImpl>(ctx, detail::Settings(TRTC_HTTP, server_url, headers, verbose));
  }
};

class SharedMemoryControlHttpContext {
 public:
  static Error Create(std::unique_ptr<SharedMemoryControlContext>* ctx, const std::string& server_url,
                      const std::map<std::string, std::string>& headers, bool verbose = false) {
    return detail::Create<detail::MemoryImpl>(ctx, detail::Settings(TRTC_HTTP, server_url, headers, verbose));
  }
};

class ProfileHttpContext {
 public:
  static Error Create(std::unique_ptr<ProfileContext>* ctx, const std::string& server_url, bool verbose = false) {
    return detail::Create<detail::ProfileImpl>(ctx,
                                               detail::Settings(TRTC_HTTP, server_url, detail::Headers(), verbose));
  }
};

// The correlation id is that of a sequence, 0 for none; version -1 is the latest.
class InferHttpContext {
 public:
  static Error Create(std::unique_ptr<InferContext>* ctx, const std::string& server_url, const std::string& model_name,
                      int64_t model_version = -1, bool verbose = false) {
    return Create(ctx, 0, server_url, detail::Headers(), model_name, model_version, verbose);
  }
  static Error Create(std::unique_ptr<InferContext>* ctx, const std::string& server_url,
                      const std::map<std::string, std::string>& headers, const std::string& model_name,
                      int64_t model_version = -1, bool verbose = false) {
    return Create(ctx, 0, server_url, headers, model_name, model_version, verbose);
  }
  static Error Create(std::unique_ptr<InferContext>* ctx, CorrelationID correlation_id, const std::string& server_url,
                      const std::string& model_name, int64_t model_version = -1, bool verbose = false) {
    return Create(ctx, correlation_id, server_url, detail::Headers(), model_name, model_version, verbose);
  }
  static Error Create(std::unique_ptr<InferContext>* ctx, CorrelationID correlation_id, const std::string& server_url,
                      const std::map<std::string, std::string>& headers, const std::string& model_name,
                      int64_t model_version = -1, bool verbose = false) {
    return detail::CreateInfer(ctx, detail::Settings(TRTC_HTTP, server_url, headers, verbose), correlation_id,
                               model_name, model_version, false, false);
  }
};

}  // namespace client
}  // namespace inferenceserver
}  // namespace nvidia

#endif
