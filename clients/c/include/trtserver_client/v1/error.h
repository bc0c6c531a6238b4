// Error of the v1 C++ client. C++11.
//
// SPDX-License-Identifier: Apache-2.0
#ifndef TRTSERVER_CLIENT_V1_ERROR_H
#define TRTSERVER_CLIENT_V1_ERROR_H

#include <cstdint>
#include <memory>
#include <ostream>
#include <string>

#include "../../trtserver_client.h"
#include "../request_status.pb.h"

namespace nvidia {
namespace inferenceserver {
namespace client {

class Error;

namespace detail {
// Holds Error::Success: the static member of a template is defined in a header without a warning
// before C++17.
template <typename E>
struct ErrorConstants {
  static const E Success;
};
template <typename E>
const E ErrorConstants<E>::Success{};

Error Take(trtc_error* error);
Error Done(const std::string& server_id, uint64_t request_id);
}  // namespace detail

// Outcome of a call: a status code, and for failures a message. Server and request id are those of
// the response, if there was one. Error::Success is the outcome of a call that succeeded.
class Error : public detail::ErrorConstants<Error> {
 public:
  explicit Error(const RequestStatus& status)
      : code_(status.code()), msg_(status.msg()), server_id_(status.server_id()), request_id_(status.request_id()) {}
  explicit Error(RequestStatusCode code = RequestStatusCode::SUCCESS) : code_(code), request_id_(0) {}
  explicit Error(RequestStatusCode code, const std::string& msg) : code_(code), msg_(msg), request_id_(0) {}

  RequestStatusCode Code() const { return code_; }
  const std::string& Message() const { return msg_; }
  const std::string& ServerId() const { return server_id_; }
  uint64_t RequestId() const { return request_id_; }
  bool IsOk() const { return code_ == RequestStatusCode::SUCCESS; }

 private:
  friend std::ostream& operator<<(std::ostream&, const Error&);
  friend Error detail::Take(trtc_error*);
  friend Error detail::Done(const std::string&, uint64_t);

  RequestStatusCode code_;
  std::string msg_;
  std::string server_id_;
  uint64_t request_id_;
};

// "[SERVER_ID REQUEST_ID] CODE - MESSAGE".
inline std::ostream& operator<<(std::ostream& out, const Error& err) {
  out << "[" << err.server_id_ << " " << err.request_id_ << "] " << RequestStatusCode_Name(err.code_);
  if (!err.msg_.empty()) out << " - " << err.msg_;
  return out;
}

namespace detail {

// Converts and releases an error of the C interface; NULL is success. The text of a server stays as
// it is; that of the client is followed by what was asked of whom.
inline Error Take(trtc_error* error) {
  if (error == nullptr) return Error();
  trtc_error_info info;
  trtc_error_get(error, &info);
  std::string text = info.message == nullptr ? "" : info.message;
  if (info.kind != TRTC_KIND_SERVER && info.asked != nullptr && *info.asked != '\0') {
    text += std::string(" (") + info.asked + ")";
  }
  Error taken(static_cast<RequestStatusCode>(info.code), text);
  taken.server_id_ = info.server_id == nullptr ? "" : info.server_id;
  taken.request_id_ = info.request_id;
  trtc_error_free(error);
  return taken;
}

// Success of a call that the server answered.
inline Error Done(const std::string& server_id, uint64_t request_id) {
  Error done;
  done.server_id_ = server_id;
  done.request_id_ = request_id;
  return done;
}

}  // namespace detail
}  // namespace client
}  // namespace inferenceserver
}  // namespace nvidia

#endif
