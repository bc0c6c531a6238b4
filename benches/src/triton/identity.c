// A backend for Triton that copies its one input to its one output.

#include <string.h>

#include "backend.h"

#define TRY(call)        \
  do {                   \
    error = call;        \
    if (error != NULL) { \
      return error;      \
    }                    \
  } while (0)

static Error *fill(TRITONBACKEND_Request *request, TRITONBACKEND_Response *response) {
  Error *error;
  TRITONBACKEND_Input *input;
  TRITONBACKEND_Output *output;
  const int64_t *shape;
  uint32_t dims, buffers;
  uint64_t bytes, copied = 0;
  int type, kind = MEMORY_CPU;
  int64_t id = 0;
  void *to;
  TRY(TRITONBACKEND_RequestInputByIndex(request, 0, &input));
  TRY(TRITONBACKEND_InputProperties(input, NULL, &type, &shape, &dims, &bytes, &buffers));
  TRY(TRITONBACKEND_ResponseOutput(response, &output, "OUTPUT0", type, shape, dims));
  TRY(TRITONBACKEND_OutputBuffer(output, &to, bytes, &kind, &id));
  for (uint32_t i = 0; i < buffers; ++i) {
    const void *from;
    uint64_t size;
    TRY(TRITONBACKEND_InputBuffer(input, i, &from, &size, &kind, &id));
    memcpy((char *)to + copied, from, size);
    copied += size;
  }
  return NULL;
}

Error *TRITONBACKEND_ModelInstanceExecute(
    TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request **requests, uint32_t count) {
  (void)instance;
  for (uint32_t i = 0; i < count; ++i) {
    TRITONBACKEND_Response *response;
    Error *error = TRITONBACKEND_ResponseNew(&response, requests[i]);
    if (error != NULL) {
      return error;
    }
    error = TRITONBACKEND_ResponseSend(response, FINAL, fill(requests[i], response));
    if (error == NULL) {
      error = TRITONBACKEND_RequestRelease(requests[i], RELEASE_ALL);
    }
    if (error != NULL) {
      return error;
    }
  }
  return NULL;
}
