/* Checks of the requests that a backend makes: what is set is read back, and what is removed is gone. None of them is sent. */

#include "checks.h"

static Error *identity(TRITONSERVER_InferenceRequest *request)
{
  const char *text = NULL;
  uint32_t flags = 99, priority = 99;
  uint64_t number = 99;
  char id[] = "own";
  MUST(TRITONSERVER_InferenceRequestId(request, &text));
  EXPECT_TEXT(TRITONSERVER_InferenceRequestId, text, "");
  MUST(TRITONSERVER_InferenceRequestSetId(request, id));
  id[0] = 'X';
  MUST(TRITONSERVER_InferenceRequestId(request, &text));
  EXPECT_TEXT(TRITONSERVER_InferenceRequestId, text, "own");

  MUST(TRITONSERVER_InferenceRequestFlags(request, &flags));
  EXPECT(TRITONSERVER_InferenceRequestFlags, flags == 0);
  MUST(TRITONSERVER_InferenceRequestSetFlags(request, SEQUENCE_START | SEQUENCE_END));
  MUST(TRITONSERVER_InferenceRequestFlags(request, &flags));
  EXPECT(TRITONSERVER_InferenceRequestSetFlags, flags == (SEQUENCE_START | SEQUENCE_END));

  MUST(TRITONSERVER_InferenceRequestCorrelationId(request, &number));
  EXPECT(TRITONSERVER_InferenceRequestCorrelationId, number == 0);
  MUST(TRITONSERVER_InferenceRequestSetCorrelationId(request, UINT64_MAX));
  MUST(TRITONSERVER_InferenceRequestCorrelationId(request, &number));
  EXPECT(TRITONSERVER_InferenceRequestSetCorrelationId, number == UINT64_MAX);
  REFUSES(ANY, TRITONSERVER_InferenceRequestCorrelationIdString(request, &text));
  MUST(TRITONSERVER_InferenceRequestSetCorrelationIdString(request, "seven"));
  MUST(TRITONSERVER_InferenceRequestCorrelationIdString(request, &text));
  EXPECT_TEXT(TRITONSERVER_InferenceRequestSetCorrelationIdString, text, "seven");
  REFUSES(ANY, TRITONSERVER_InferenceRequestCorrelationId(request, &number));

  MUST(TRITONSERVER_InferenceRequestSetPriority(request, 3));
  MUST(TRITONSERVER_InferenceRequestPriority(request, &priority));
  EXPECT(TRITONSERVER_InferenceRequestSetPriority, priority == 3);
  MUST(TRITONSERVER_InferenceRequestSetPriorityUInt64(request, 5));
  MUST(TRITONSERVER_InferenceRequestPriorityUInt64(request, &number));
  EXPECT(TRITONSERVER_InferenceRequestSetPriorityUInt64, number == 5);

  MUST(TRITONSERVER_InferenceRequestTimeoutMicroseconds(request, &number));
  EXPECT(TRITONSERVER_InferenceRequestTimeoutMicroseconds, number == 0);
  MUST(TRITONSERVER_InferenceRequestSetTimeoutMicroseconds(request, 1234567));
  MUST(TRITONSERVER_InferenceRequestTimeoutMicroseconds(request, &number));
  EXPECT(TRITONSERVER_InferenceRequestSetTimeoutMicroseconds, number == 1234567);

  MUST(TRITONSERVER_InferenceRequestSetStringParameter(request, "word", "text"));
  MUST(TRITONSERVER_InferenceRequestSetIntParameter(request, "number", -5));
  MUST(TRITONSERVER_InferenceRequestSetBoolParameter(request, "truth", true));
  MUST(TRITONSERVER_InferenceRequestSetDoubleParameter(request, "real", 2.5));
  return NULL;
}

static Error *tensors(TRITONSERVER_InferenceRequest *request)
{
  static const int32_t DATA[4] = {1, 2, 3, 4};
  static const int64_t SHAPE[] = {1, 4};
  TRITONSERVER_BufferAttributes *attributes = NULL;
  MUST(TRITONSERVER_InferenceRequestAddInput(request, "INPUT0", TYPE_INT32, SHAPE, 2));
  MUST(TRITONSERVER_InferenceRequestAddInput(request, "OTHER", TYPE_INT32, SHAPE, 2));
  MUST(TRITONSERVER_InferenceRequestAppendInputDataWithHostPolicy(request, "INPUT0", DATA, 8, MEMORY_CPU, 0, "cpu"));
  MUST(TRITONSERVER_BufferAttributesNew(&attributes));
  MUST(TRITONSERVER_BufferAttributesSetByteSize(attributes, 8));
  MUST(TRITONSERVER_BufferAttributesSetMemoryType(attributes, MEMORY_CPU));
  MUST(TRITONSERVER_BufferAttributesSetMemoryTypeId(attributes, 0));
  MUST(TRITONSERVER_InferenceRequestAppendInputDataWithBufferAttributes(request, "INPUT0", DATA + 2, attributes));
  REFUSES(ANY, TRITONSERVER_InferenceRequestAppendInputDataWithBufferAttributes(request, "NONE", DATA, attributes));
  MUST(TRITONSERVER_BufferAttributesDelete(attributes));
  MUST(TRITONSERVER_InferenceRequestRemoveAllInputData(request, "INPUT0"));
  REFUSES(ANY, TRITONSERVER_InferenceRequestRemoveAllInputData(request, "NONE"));

  MUST(TRITONSERVER_InferenceRequestRemoveInput(request, "OTHER"));
  REFUSES(ANY, TRITONSERVER_InferenceRequestRemoveInput(request, "OTHER"));
  /* A removed input can be added again. */
  MUST(TRITONSERVER_InferenceRequestAddInput(request, "OTHER", TYPE_INT32, SHAPE, 2));
  MUST(TRITONSERVER_InferenceRequestRemoveAllInputs(request));
  REFUSES(ANY, TRITONSERVER_InferenceRequestRemoveInput(request, "INPUT0"));

  MUST(TRITONSERVER_InferenceRequestAddRequestedOutput(request, "OUTPUT0"));
  MUST(TRITONSERVER_InferenceRequestRemoveRequestedOutput(request, "OUTPUT0"));
  MUST(TRITONSERVER_InferenceRequestAddRequestedOutput(request, "OUTPUT0"));
  MUST(TRITONSERVER_InferenceRequestRemoveAllRequestedOutputs(request));
  return NULL;
}

Error *check_own_request(TRITONSERVER_Server *server)
{
  TRITONSERVER_InferenceRequest *request = NULL;
  MUST(TRITONSERVER_InferenceRequestNew(&request, server, "inner", 1));
  TRY(identity(request));
  TRY(tensors(request));
  MUST(TRITONSERVER_InferenceRequestDelete(request));
  return NULL;
}
