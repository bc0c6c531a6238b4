// A backend written in C++ that lets an exception out of an entry point: in ModelInitialize,
// ModelInstanceInitialize or ModelInstanceExecute, as one of the macros IN_MODEL, IN_INSTANCE and
// IN_EXECUTE says.

#include <cstdint>
#include <stdexcept>

struct TRITONSERVER_Error;
struct TRITONBACKEND_Model;
struct TRITONBACKEND_ModelInstance;
struct TRITONBACKEND_Request;

extern "C" {

TRITONSERVER_Error *TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *)
{
#ifdef IN_MODEL
  throw std::runtime_error("no wood for the model");
#endif
  return nullptr;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance *)
{
#ifdef IN_INSTANCE
  throw std::runtime_error("no wood for the instance");
#endif
  return nullptr;
}

TRITONSERVER_Error *TRITONBACKEND_ModelInstanceExecute(
    TRITONBACKEND_ModelInstance *, TRITONBACKEND_Request **, uint32_t)
{
  throw std::runtime_error("no wood for the requests");
}

}  // extern "C"
