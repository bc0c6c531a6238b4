/* Checks of sequence state: the sum of a sequence's inputs, kept by the host. The model's configuration lists the state SUM, whose
 * stored value comes as the input SUM_IN. The request with first value 0 writes the state without committing it. */

#include "checks.h"

static Error *one(TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request *request)
{
  static const int64_t SHAPE[] = {1, 1}, ROW[] = {1, 4};
  const void *data = NULL, *stored = NULL;
  uint64_t bytes = 0, id = 0;
  uint32_t flags = 99;
  int kind = MEMORY_CPU;
  int64_t device = 0;
  void *buffer = NULL;
  size_t size = 0;
  TRITONBACKEND_State *state = NULL;
  TRITONBACKEND_Response *response = NULL;
  TRITONSERVER_BufferAttributes *attributes = NULL;
  uint64_t start = now();
  MUST(TRITONBACKEND_RequestCorrelationId(request, &id));
  EXPECT(TRITONBACKEND_RequestCorrelationId, id == 7);
  MUST(TRITONBACKEND_RequestFlags(request, &flags));
  TRY(read_input(request, "INPUT0", &data, &bytes));
  const int32_t *values = data;
  EXPECT(TRITONBACKEND_RequestFlags, ((flags & SEQUENCE_START) != 0) == (values[1] == 1));
  TRY(read_input(request, "SUM_IN", &stored, &bytes));
  EXPECT(TRITONBACKEND_InputBuffer, bytes == 4);
  int32_t sum = *(const int32_t *)stored + values[0];

  REFUSES(ANY, TRITONBACKEND_StateNew(&state, request, "NO_SUCH_STATE", TYPE_INT32, SHAPE, 2));
  MUST(TRITONBACKEND_StateNew(&state, request, "SUM", TYPE_INT32, SHAPE, 2));
  MUST(TRITONBACKEND_StateBuffer(state, &buffer, 4, &kind, &device));
  EXPECT(TRITONBACKEND_StateBuffer, buffer != NULL && kind == MEMORY_CPU);
  MUST(TRITONBACKEND_StateBufferAttributes(state, &attributes));
  MUST(TRITONSERVER_BufferAttributesByteSize(attributes, &size));
  EXPECT(TRITONBACKEND_StateBufferAttributes, size == 4);
  /* Another size is another buffer; the same size is the same one. */
  void *same = NULL;
  MUST(TRITONBACKEND_StateBuffer(state, &same, 4, &kind, &device));
  EXPECT(TRITONBACKEND_StateBuffer, same == buffer);
  MUST(TRITONBACKEND_StateBuffer(state, &buffer, 4096, &kind, &device));
  memset(buffer, 0x55, 4096);
  MUST(TRITONBACKEND_StateBufferAttributes(state, &attributes));
  MUST(TRITONSERVER_BufferAttributesByteSize(attributes, &size));
  EXPECT(TRITONBACKEND_StateBufferAttributes, size == 4096);
  MUST(TRITONBACKEND_StateBuffer(state, &buffer, 4, &kind, &device));
  *(int32_t *)buffer = values[0] == 0 ? -1 : sum;
  if (values[0] != 0) MUST(TRITONBACKEND_StateUpdate(state));

  int32_t row[4] = {sum, 0, 0, 0};
  MUST(TRITONBACKEND_ResponseNew(&response, request));
  TRY(put_output(response, "OUTPUT0", TYPE_INT32, ROW, 2, row, sizeof row));
  MUST(TRITONBACKEND_ResponseSend(response, FINAL, NULL));
  uint64_t end = now();
  MUST(TRITONBACKEND_ModelInstanceReportStatistics(instance, request, true, start, start, end, end));
  return NULL;
}

Error *check_state(TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request **requests, uint32_t count)
{
  for (uint32_t i = 0; i < count; i++) TRY(one(instance, requests[i]));
  for (uint32_t i = 0; i < count; i++) MUST(TRITONBACKEND_RequestRelease(requests[i], RELEASE_ALL));
  return NULL;
}
