// The second source file of v1_11.cc: the headers under the names that they had in the client
// packages of TRTIS.
#include <sstream>

#include "grpc_service.pb.h"
#include "request_grpc.h"
#include "request_http.h"

std::string flat_error() {
  std::ostringstream text;
  text << nvidia::inferenceserver::client::Error::Success;
  return text.str();
}
