/* Checks of requests and their inputs, with the request that tests/wire/triton_backends sends: id `r-1`, INPUT0 = [1 2 3 4], TEXT =
 * ["a", "bc"], three parameters, a timeout, output OUTPUT0. */

#include "checks.h"

static Error *identity(TRITONBACKEND_Request *request)
{
  const char *text = NULL;
  uint64_t number = 99;
  uint32_t flags = 99;
  bool cancelled = true;
  TRITONSERVER_InferenceTrace *trace = UNSET;
  MUST(TRITONBACKEND_RequestId(request, &text));
  EXPECT_TEXT(TRITONBACKEND_RequestId, text, "r-1");
  MUST(TRITONBACKEND_RequestCorrelationId(request, &number));
  EXPECT(TRITONBACKEND_RequestCorrelationId, number == 0);
  REFUSES(ANY, TRITONBACKEND_RequestCorrelationIdString(request, &text));
  MUST(TRITONBACKEND_RequestFlags(request, &flags));
  EXPECT(TRITONBACKEND_RequestFlags, flags == 0);
  MUST(TRITONBACKEND_InferenceRequestTimeoutMicroseconds(request, &number));
  EXPECT(TRITONBACKEND_InferenceRequestTimeoutMicroseconds, number == 50000000);
  MUST(TRITONBACKEND_RequestIsCancelled(request, &cancelled));
  EXPECT(TRITONBACKEND_RequestIsCancelled, !cancelled);
  MUST(TRITONBACKEND_RequestTrace(request, &trace));
  EXPECT(TRITONBACKEND_RequestTrace, trace == NULL);
  return NULL;
}

static Error *request_parameters(TRITONBACKEND_Request *request)
{
  uint32_t count = 99, seen = 0;
  MUST(TRITONBACKEND_RequestParameterCount(request, &count));
  EXPECT(TRITONBACKEND_RequestParameterCount, count == 3);
  for (uint32_t i = 0; i < count; i++) {
    const char *key = NULL;
    const void *value = NULL;
    int type = 99;
    MUST(TRITONBACKEND_RequestParameter(request, i, &key, &type, &value));
    if (strcmp(key, "word") == 0) {
      EXPECT(TRITONBACKEND_RequestParameter, type == PARAMETER_STRING);
      EXPECT_TEXT(TRITONBACKEND_RequestParameter, (const char *)value, "text");
      seen |= 1;
    } else if (strcmp(key, "number") == 0) {
      EXPECT(TRITONBACKEND_RequestParameter, type == PARAMETER_INT && *(const int64_t *)value == -5);
      seen |= 2;
    } else if (strcmp(key, "truth") == 0) {
      EXPECT(TRITONBACKEND_RequestParameter, type == PARAMETER_BOOL && *(const bool *)value);
      seen |= 4;
    }
  }
  EXPECT(TRITONBACKEND_RequestParameter, seen == 7);
  const char *key = NULL;
  const void *value = NULL;
  int type = 99;
  REFUSES(ANY, TRITONBACKEND_RequestParameter(request, count, &key, &type, &value));
  return NULL;
}

/* Every out pointer of the properties may be null. */
static Error *properties(TRITONBACKEND_Input *input)
{
  const char *name = NULL, *same = NULL;
  int type = 99;
  const int64_t *shape = NULL;
  uint32_t dims = 99, buffers = 99;
  uint64_t bytes = 99;
  MUST(TRITONBACKEND_InputProperties(input, &name, &type, &shape, &dims, &bytes, &buffers));
  EXPECT_TEXT(TRITONBACKEND_InputProperties, name, "INPUT0");
  EXPECT(TRITONBACKEND_InputProperties, type == TYPE_INT32);
  EXPECT(TRITONBACKEND_InputProperties, dims == 2 && shape[0] == 1 && shape[1] == 4);
  EXPECT(TRITONBACKEND_InputProperties, bytes == 16 && buffers == 1);
  MUST(TRITONBACKEND_InputProperties(input, NULL, NULL, NULL, NULL, NULL, NULL));
  MUST(TRITONBACKEND_InputPropertiesForHostPolicy(input, NULL, &same, NULL, NULL, NULL, NULL, NULL));
  EXPECT_TEXT(TRITONBACKEND_InputPropertiesForHostPolicy, same, "INPUT0");
  MUST(TRITONBACKEND_InputPropertiesForHostPolicy(input, "cpu", NULL, &type, &shape, &dims, &bytes, &buffers));
  EXPECT(TRITONBACKEND_InputPropertiesForHostPolicy, type == TYPE_INT32 && bytes == 16 && buffers == 1);
  return NULL;
}

static Error *buffers(TRITONBACKEND_Input *input)
{
  const void *data = NULL, *same = NULL;
  uint64_t bytes = 0;
  /* Preferred: memory that there is none of. */
  int kind = MEMORY_GPU;
  int64_t id = 1;
  MUST(TRITONBACKEND_InputBuffer(input, 0, &data, &bytes, &kind, &id));
  EXPECT(TRITONBACKEND_InputBuffer, bytes == 16 && kind == MEMORY_CPU && id == 0);
  const int32_t *values = data;
  EXPECT(TRITONBACKEND_InputBuffer, values[0] == 1 && values[1] == 2 && values[2] == 3 && values[3] == 4);
  MUST(TRITONBACKEND_InputBufferForHostPolicy(input, "cpu", 0, &same, &bytes, &kind, &id));
  EXPECT(TRITONBACKEND_InputBufferForHostPolicy, same == data && bytes == 16);
  MUST(TRITONBACKEND_InputBufferForHostPolicy(input, NULL, 0, &same, &bytes, &kind, &id));
  EXPECT(TRITONBACKEND_InputBufferForHostPolicy, same == data && bytes == 16);
  /* Past the last buffer there is an error, or no data. */
  Error *error = TRITONBACKEND_InputBuffer(input, 1, &data, &bytes, &kind, &id);
  EXPECT(TRITONBACKEND_InputBuffer, error != NULL || data == NULL);
  if (error != NULL) TRITONSERVER_ErrorDelete(error);

  /* The attributes are the input's. */
  TRITONSERVER_BufferAttributes *attributes = NULL;
  size_t size = 0;
  void *handle = UNSET;
  MUST(TRITONBACKEND_InputBufferAttributes(input, 0, &same, &attributes));
  MUST(TRITONSERVER_BufferAttributesByteSize(attributes, &size));
  MUST(TRITONSERVER_BufferAttributesMemoryType(attributes, &kind));
  MUST(TRITONSERVER_BufferAttributesMemoryTypeId(attributes, &id));
  MUST(TRITONSERVER_BufferAttributesCudaIpcHandle(attributes, &handle));
  EXPECT(TRITONBACKEND_InputBufferAttributes, size == 16 && kind == MEMORY_CPU && id == 0 && handle == NULL);
  EXPECT(TRITONBACKEND_InputBufferAttributes, memcmp(same, values, 16) == 0);
  return NULL;
}

static Error *inputs(TRITONBACKEND_Request *request)
{
  uint32_t count = 99, seen = 0;
  const char *name = NULL;
  TRITONBACKEND_Input *input = NULL;
  MUST(TRITONBACKEND_RequestInputCount(request, &count));
  EXPECT(TRITONBACKEND_RequestInputCount, count == 2);
  for (uint32_t i = 0; i < count; i++) {
    const char *same = NULL;
    MUST(TRITONBACKEND_RequestInputName(request, i, &name));
    MUST(TRITONBACKEND_RequestInputByIndex(request, i, &input));
    MUST(TRITONBACKEND_InputProperties(input, &same, NULL, NULL, NULL, NULL, NULL));
    EXPECT_TEXT(TRITONBACKEND_RequestInputByIndex, same, name);
    seen |= strcmp(name, "INPUT0") == 0 ? 1 : strcmp(name, "TEXT") == 0 ? 2 : 0;
  }
  EXPECT(TRITONBACKEND_RequestInputName, seen == 3);
  REFUSES(ANY, TRITONBACKEND_RequestInputName(request, count, &name));
  REFUSES(ANY, TRITONBACKEND_RequestInputByIndex(request, count, &input));
  REFUSES(ANY, TRITONBACKEND_RequestInput(request, "NO_SUCH_INPUT", &input));
  MUST(TRITONBACKEND_RequestInput(request, "INPUT0", &input));
  TRY(properties(input));
  TRY(buffers(input));
  /* Strings: each after its length in four bytes. */
  const void *data = NULL;
  uint64_t bytes = 0;
  TRY(read_input(request, "TEXT", &data, &bytes));
  EXPECT(TRITONBACKEND_InputBuffer, bytes == 11 && memcmp(data, "\1\0\0\0a\2\0\0\0bc", 11) == 0);
  return NULL;
}

static Error *outputs(TRITONBACKEND_Request *request)
{
  uint32_t count = 99;
  const char *name = NULL;
  size_t bytes = 16;
  int kind = MEMORY_GPU;
  int64_t id = 0;
  MUST(TRITONBACKEND_RequestOutputCount(request, &count));
  EXPECT(TRITONBACKEND_RequestOutputCount, count == 1);
  MUST(TRITONBACKEND_RequestOutputName(request, 0, &name));
  EXPECT_TEXT(TRITONBACKEND_RequestOutputName, name, "OUTPUT0");
  REFUSES(ANY, TRITONBACKEND_RequestOutputName(request, 1, &name));
  MUST(TRITONBACKEND_RequestOutputBufferProperties(request, "OUTPUT0", &bytes, &kind, &id));
  EXPECT(TRITONBACKEND_RequestOutputBufferProperties, kind == MEMORY_CPU && id == 0);
  kind = MEMORY_CPU;
  MUST(TRITONBACKEND_RequestOutputBufferProperties(request, NULL, NULL, &kind, &id));
  EXPECT(TRITONBACKEND_RequestOutputBufferProperties, kind == MEMORY_CPU && id == 0);
  return NULL;
}

Error *check_requests(TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request **requests, uint32_t count)
{
  uint64_t start = now();
  EXPECT(TRITONBACKEND_ModelInstanceExecute, count == 1);
  TRY(identity(*requests));
  TRY(request_parameters(*requests));
  TRY(inputs(*requests));
  TRY(outputs(*requests));
  uint64_t compute = now();
  TRY(echo(*requests, FINAL));
  uint64_t end = now();
  MUST(TRITONBACKEND_ModelInstanceReportStatistics(instance, *requests, true, start, compute, end, end));
  MUST(TRITONBACKEND_RequestRelease(*requests, RELEASE_ALL));
  MUST(TRITONBACKEND_ModelInstanceReportBatchStatistics(instance, 1, start, compute, end, end));
  return NULL;
}
