// Settings and handle of a connection, shared by the contexts of the v1 C++ client. C++11.
//
// SPDX-License-Identifier: Apache-2.0
#ifndef TRTSERVER_CLIENT_V1_CONNECTION_H
#define TRTSERVER_CLIENT_V1_CONNECTION_H

#include <cctype>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "error.h"

namespace nvidia {
namespace inferenceserver {
namespace client {
namespace detail {

typedef std::map<std::string, std::string> Headers;

// The settings structure of the C interface. It refers to the arguments.
class Settings {
 public:
  Settings(int32_t protocol, const std::string& url, const Headers& headers, bool verbose) {
    std::memset(&settings_, 0, sizeof(settings_));
    for (const auto& header : headers) {
      const trtc_header each = {header.first.c_str(), header.second.c_str()};
      headers_.push_back(each);
    }
    settings_.struct_size = sizeof(settings_);
    settings_.url = url.c_str();
    settings_.protocol = protocol;
    settings_.headers = headers_.data();
    settings_.header_count = headers_.size();
    settings_.verbose = verbose;
  }
  Settings(const Settings&) = delete;
  Settings& operator=(const Settings&) = delete;
  const trtc_settings* get() const { return &settings_; }

  // The library would follow the scheme of the URL; a context named after HTTP must not.
  Error Check() const {
    const std::string url = settings_.url;
    std::string scheme = url.substr(0, url.find("://"));
    for (char& letter : scheme) letter = static_cast<char>(std::tolower(static_cast<unsigned char>(letter)));
    if (settings_.protocol != TRTC_HTTP || scheme.size() == url.size() || (scheme != "grpc" && scheme != "grpcs")) {
      return Error();
    }
    return Error(RequestStatusCode::INVALID_ARG,
                 "the URL '" + url + "' is one of gRPC, but the context uses HTTP: expecting a gRPC context or http://");
  }

 private:
  std::vector<trtc_header> headers_;
  trtc_settings settings_;
};

// The handle of a server, with conversions that all its contexts need.
class Connection {
 public:
  Connection() : client_(nullptr) {}
  ~Connection() { trtc_v1_client_free(client_); }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  Error Open(const Settings& settings) {
    const Error err = settings.Check();
    return err.IsOk() ? Take(trtc_v1_client_new(settings.get(), &client_)) : err;
  }
  trtc_v1_client* get() const { return client_; }

  // The outcome of a call, with the request id of the response.
  Error Outcome(trtc_error* error) const {
    return error == nullptr ? Done(std::string(), trtc_v1_client_last_request_id(client_)) : Take(error);
  }

  // The outcome of a call that returned a serialized message.
  template <typename Message>
  Error Parse(trtc_error* error, trtc_buffer* buffer, Message* message, const char* what) const {
    message->Clear();
    if (error != nullptr) return Take(error);
    const bool parsed = message->ParseFromArray(buffer->data, static_cast<int>(buffer->size));
    trtc_buffer_free(buffer);
    if (!parsed) return Error(RequestStatusCode::INTERNAL, std::string("failed to parse ") + what);
    return Outcome(nullptr);
  }

 private:
  trtc_v1_client* client_;
};

// Makes a context of type `Impl`, whose members are `connection` and what `args` initialise.
template <typename Impl, typename Context, typename... Args>
Error Create(std::unique_ptr<Context>* ctx, const Settings& settings, const Args&... args) {
  std::unique_ptr<Impl> made(new Impl(args...));
  const Error err = made->connection.Open(settings);
  if (err.IsOk()) ctx->reset(made.release());
  return err;
}

}  // namespace detail
}  // namespace client
}  // namespace inferenceserver
}  // namespace nvidia

#endif
