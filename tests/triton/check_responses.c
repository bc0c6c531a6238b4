/* Checks of responses: outputs, parameters, errors for single requests of a batch, responses that are dropped. */

#include "checks.h"

static Error *read_back(TRITONBACKEND_Response *response)
{
  const char *name = NULL;
  int type = 99;
  const int64_t *shape = NULL;
  uint64_t dims = 99;
  MUST(TRITONBACKEND_InferenceResponseOutput(response, 0, &name, &type, &shape, &dims));
  EXPECT_TEXT(TRITONBACKEND_InferenceResponseOutput, name, "OUTPUT0");
  EXPECT(TRITONBACKEND_InferenceResponseOutput, type == TYPE_INT32 && dims == 2 && shape[0] == 1 && shape[1] == 4);
  MUST(TRITONBACKEND_InferenceResponseOutputByName(response, "WORDS", &type, &shape, &dims));
  EXPECT(TRITONBACKEND_InferenceResponseOutputByName, type == TYPE_BYTES && dims == 2 && shape[1] == 2);
  REFUSES(ANY, TRITONBACKEND_InferenceResponseOutput(response, 2, &name, &type, &shape, &dims));
  REFUSES(ANY, TRITONBACKEND_InferenceResponseOutputByName(response, "NO_SUCH_OUTPUT", &type, &shape, &dims));
  return NULL;
}

static Error *good(TRITONBACKEND_Request *request)
{
  static const int64_t WORDS[] = {1, 2};
  static const int32_t VALUES[] = {10, 20, 30, 40};
  TRITONBACKEND_Response *response = NULL, *dropped = NULL;
  TRITONBACKEND_Output *output = NULL;
  TRITONSERVER_BufferAttributes *attributes = NULL;
  void *buffer = NULL;
  /* Preferred: GPU memory, which there is none of. */
  int kind = MEMORY_GPU;
  int64_t id = 0;
  size_t bytes = 0;
  MUST(TRITONBACKEND_ResponseNew(&dropped, request));
  MUST(TRITONBACKEND_ResponseOutput(dropped, &output, "OUTPUT0", TYPE_INT32, WORDS, 2));
  MUST(TRITONBACKEND_ResponseDelete(dropped));

  MUST(TRITONBACKEND_ResponseNew(&response, request));
  /* Name and shape are copied. */
  char name[] = "OUTPUT0";
  int64_t shape[] = {1, 4};
  MUST(TRITONBACKEND_ResponseOutput(response, &output, name, TYPE_INT32, shape, 2));
  name[0] = 'X';
  shape[1] = 99;
  MUST(TRITONBACKEND_OutputBuffer(output, &buffer, sizeof VALUES, &kind, &id));
  EXPECT(TRITONBACKEND_OutputBuffer, buffer != NULL && kind == MEMORY_CPU && id == 0);
  memcpy(buffer, VALUES, sizeof VALUES);
  MUST(TRITONBACKEND_OutputBufferAttributes(output, &attributes));
  MUST(TRITONSERVER_BufferAttributesByteSize(attributes, &bytes));
  MUST(TRITONSERVER_BufferAttributesMemoryType(attributes, &kind));
  EXPECT(TRITONBACKEND_OutputBufferAttributes, bytes == sizeof VALUES && kind == MEMORY_CPU);
  TRY(put_output(response, "WORDS", TYPE_BYTES, WORDS, 2, "\1\0\0\0a\2\0\0\0bc", 11));
  TRY(read_back(response));

  char key[] = "word", value[] = "text";
  MUST(TRITONBACKEND_ResponseSetStringParameter(response, key, value));
  key[0] = value[0] = 'X';
  MUST(TRITONBACKEND_ResponseSetIntParameter(response, "number", INT64_MIN));
  MUST(TRITONBACKEND_ResponseSetBoolParameter(response, "truth", true));
  MUST(TRITONBACKEND_ResponseSetDoubleParameter(response, "real", 2.5));
  MUST(TRITONBACKEND_ResponseSend(response, FINAL, NULL));
  return NULL;
}

/* The error stays the sender's. */
static Error *bad(TRITONBACKEND_Request *request)
{
  TRITONBACKEND_Response *response = NULL;
  Error *error = TRITONSERVER_ErrorNew(CODE_INVALID_ARG, "this request is refused by the probe");
  MUST(TRITONBACKEND_ResponseNew(&response, request));
  MUST(TRITONBACKEND_ResponseSend(response, FINAL, error));
  EXPECT_TEXT(TRITONBACKEND_ResponseSend, TRITONSERVER_ErrorMessage(error), "this request is refused by the probe");
  TRITONSERVER_ErrorDelete(error);
  return NULL;
}

/* A request with a first value below zero gets an error, the others of the batch get their outputs. */
Error *check_responses(TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request **requests, uint32_t count)
{
  uint64_t start = now();
  for (uint32_t i = 0; i < count; i++) {
    const void *data = NULL;
    uint64_t bytes = 0;
    TRY(read_input(requests[i], "INPUT0", &data, &bytes));
    bool refused = *(const int32_t *)data < 0;
    TRY(refused ? bad(requests[i]) : good(requests[i]));
    uint64_t end = now();
    MUST(TRITONBACKEND_ModelInstanceReportStatistics(instance, requests[i], !refused, start, start, end, end));
  }
  uint64_t end = now();
  MUST(TRITONBACKEND_ModelInstanceReportBatchStatistics(instance, count, start, start, end, end));
  for (uint32_t i = 0; i < count; i++) MUST(TRITONBACKEND_RequestRelease(requests[i], RELEASE_ALL));
  return NULL;
}

Error *check_cancel(TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request **requests, uint32_t count)
{
  (void)instance;
  TRITONSERVER_MetricFamily *family = NULL;
  TRITONSERVER_Metric *waiting = NULL;
  MUST(TRITONSERVER_MetricFamilyNew(&family, METRIC_GAUGE, "contract_waiting", "1: executing, 2: cancellation seen."));
  MUST(TRITONSERVER_MetricNew(&waiting, family, NULL, 0));
  for (uint32_t i = 0; i < count; i++) {
    TRITONBACKEND_Response *response = NULL;
    bool cancelled = false;
    MUST(TRITONSERVER_MetricSet(waiting, 1));
    while (!cancelled) MUST(TRITONBACKEND_RequestIsCancelled(requests[i], &cancelled));
    MUST(TRITONSERVER_MetricSet(waiting, 2));
    Error *error = TRITONSERVER_ErrorNew(CODE_CANCELLED, "cancelled");
    MUST(TRITONBACKEND_ResponseNew(&response, requests[i]));
    MUST(TRITONBACKEND_ResponseSend(response, FINAL, error));
    TRITONSERVER_ErrorDelete(error);
    MUST(TRITONBACKEND_RequestRelease(requests[i], RELEASE_ALL));
  }
  return NULL;
}
