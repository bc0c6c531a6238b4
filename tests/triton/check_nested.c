/* Checks of nested inference: a request of the model asks another model, whose outputs lie in memory of the probe's allocator. */

#include "checks.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  /* Counts of callbacks. */
  int started, allocated, freed, released;
  bool final;
  TRITONSERVER_InferenceResponse *response;
} Call;

static Call *changed(Call *call, int *count)
{
  pthread_mutex_lock(&call->lock);
  *count += 1;
  pthread_cond_broadcast(&call->changed);
  pthread_mutex_unlock(&call->lock);
  return call;
}

static Error *allocate(
    TRITONSERVER_ResponseAllocator *allocator, const char *tensor, size_t bytes, int kind, int64_t id, void *user,
    void **buffer, void **buffer_user, int *actual_kind, int64_t *actual_id)
{
  (void)allocator, (void)kind, (void)id;
  if (strcmp(tensor, "OUTPUT0") != 0) return TRITONSERVER_ErrorNew(CODE_INTERNAL, "unexpected output");
  Call *call = user;
  *buffer = malloc(bytes == 0 ? 1 : bytes);
  *buffer_user = call;
  *actual_kind = MEMORY_CPU;
  *actual_id = 0;
  changed(call, &call->allocated);
  return NULL;
}

static Error *free_output(
    TRITONSERVER_ResponseAllocator *allocator, void *buffer, void *buffer_user, size_t bytes, int kind, int64_t id)
{
  (void)allocator, (void)bytes, (void)kind, (void)id;
  free(buffer);
  Call *call = buffer_user;
  changed(call, &call->freed);
  return NULL;
}

static Error *start(TRITONSERVER_ResponseAllocator *allocator, void *user)
{
  (void)allocator;
  Call *call = user;
  changed(call, &call->started);
  return NULL;
}

static Error *query(
    TRITONSERVER_ResponseAllocator *allocator, void *user, const char *tensor, size_t *bytes, int *kind, int64_t *id)
{
  (void)allocator, (void)user, (void)tensor, (void)bytes;
  *kind = MEMORY_CPU;
  *id = 0;
  return NULL;
}

static Error *attributes(
    TRITONSERVER_ResponseAllocator *allocator, const char *tensor, TRITONSERVER_BufferAttributes *of, void *user,
    void *buffer_user)
{
  (void)allocator, (void)tensor, (void)of, (void)user, (void)buffer_user;
  return NULL;
}

static void request_released(TRITONSERVER_InferenceRequest *request, uint32_t flags, void *user)
{
  Call *call = user;
  if ((flags & RELEASE_ALL) != 0) TRITONSERVER_InferenceRequestDelete(request);
  changed(call, &call->released);
}

static void response_arrived(TRITONSERVER_InferenceResponse *response, uint32_t flags, void *user)
{
  Call *call = user;
  pthread_mutex_lock(&call->lock);
  if (response != NULL) call->response = response;
  call->final |= (flags & FINAL) != 0;
  pthread_cond_broadcast(&call->changed);
  pthread_mutex_unlock(&call->lock);
}

static Error *server(TRITONSERVER_Server *server)
{
  bool ready = false;
  uint32_t flags = 99;
  MUST(TRITONSERVER_ServerModelIsReady(server, "inner", -1, &ready));
  EXPECT(TRITONSERVER_ServerModelIsReady, ready);
  MUST(TRITONSERVER_ServerModelIsReady(server, "inner", 9, &ready));
  EXPECT(TRITONSERVER_ServerModelIsReady, !ready);
  MUST(TRITONSERVER_ServerModelTransactionProperties(server, "inner", 1, &flags, NULL));
  EXPECT(TRITONSERVER_ServerModelTransactionProperties, flags == ONE_TO_ONE);
  REFUSES(ANY, TRITONSERVER_ServerModelTransactionProperties(server, "no_such_model", -1, &flags, NULL));
  TRITONSERVER_InferenceRequest *request = NULL;
  REFUSES(ANY, TRITONSERVER_InferenceRequestNew(&request, server, "no_such_model", -1));
  /* Loading needs model control, which the test's server does not have. */
  REFUSES(ANY, TRITONSERVER_ServerLoadModel(server, "no_such_model"));
  REFUSES(ANY, TRITONSERVER_ServerLoadModelWithParameters(server, "no_such_model", NULL, 0));
  REFUSES(ANY, TRITONSERVER_ServerUnloadModel(server, "no_such_model"));
  REFUSES(ANY, TRITONSERVER_ServerUnloadModelAndDependents(server, "no_such_model"));
  return NULL;
}

static Error *describe(TRITONSERVER_InferenceRequest *request, const void *data)
{
  int64_t shape[] = {1, 4};
  char name[] = "INPUT0";
  MUST(TRITONSERVER_InferenceRequestSetId(request, "nested"));
  MUST(TRITONSERVER_InferenceRequestSetFlags(request, 0));
  MUST(TRITONSERVER_InferenceRequestSetCorrelationIdString(request, "seven"));
  MUST(TRITONSERVER_InferenceRequestSetCorrelationId(request, 0));
  MUST(TRITONSERVER_InferenceRequestSetTimeoutMicroseconds(request, 50000000));
  MUST(TRITONSERVER_InferenceRequestSetStringParameter(request, "word", "text"));
  MUST(TRITONSERVER_InferenceRequestSetIntParameter(request, "number", -5));
  MUST(TRITONSERVER_InferenceRequestSetBoolParameter(request, "truth", true));
  MUST(TRITONSERVER_InferenceRequestAddInput(request, name, TYPE_INT32, shape, 2));
  /* Name and shape are copied, data is not. */
  shape[1] = 99;
  name[0] = 'X';
  REFUSES(ANY, TRITONSERVER_InferenceRequestAddInput(request, "INPUT0", TYPE_INT32, shape, 2));
  MUST(TRITONSERVER_InferenceRequestAppendInputData(request, "INPUT0", data, 16, MEMORY_CPU, 0));
  REFUSES(ANY, TRITONSERVER_InferenceRequestAppendInputData(request, "NO_SUCH_INPUT", data, 16, MEMORY_CPU, 0));
  MUST(TRITONSERVER_InferenceRequestAddRequestedOutput(request, "OUTPUT0"));
  return NULL;
}

static Error *read_response(TRITONSERVER_InferenceResponse *response, Call *call, const void *data)
{
  uint32_t count = 99;
  const char *name = NULL;
  int type = 99, kind = 99;
  const int64_t *shape = NULL;
  uint64_t dims = 99;
  const void *base = NULL;
  size_t bytes = 0;
  int64_t id = 99;
  void *user = NULL;
  MUST(TRITONSERVER_InferenceResponseError(response));
  int64_t version = 99;
  MUST(TRITONSERVER_InferenceResponseModel(response, &name, &version));
  EXPECT_TEXT(TRITONSERVER_InferenceResponseModel, name, "inner");
  EXPECT(TRITONSERVER_InferenceResponseModel, version == 1);
  MUST(TRITONSERVER_InferenceResponseId(response, &name));
  EXPECT_TEXT(TRITONSERVER_InferenceResponseId, name, "nested");
  MUST(TRITONSERVER_InferenceResponseOutputCount(response, &count));
  EXPECT(TRITONSERVER_InferenceResponseOutputCount, count == 1);
  MUST(TRITONSERVER_InferenceResponseOutput(
      response, 0, &name, &type, &shape, &dims, &base, &bytes, &kind, &id, &user));
  EXPECT_TEXT(TRITONSERVER_InferenceResponseOutput, name, "OUTPUT0");
  EXPECT(TRITONSERVER_InferenceResponseOutput, type == TYPE_INT32 && dims == 2 && shape[0] == 1 && shape[1] == 4);
  EXPECT(TRITONSERVER_InferenceResponseOutput, bytes == 16 && kind == MEMORY_CPU && id == 0 && user == call);
  EXPECT(TRITONSERVER_InferenceResponseOutput, memcmp(base, data, 16) == 0);
  REFUSES(ANY, TRITONSERVER_InferenceResponseOutput(
      response, 1, &name, &type, &shape, &dims, &base, &bytes, &kind, &id, &user));
  MUST(TRITONSERVER_InferenceResponseParameterCount(response, &count));
  for (uint32_t i = 0; i < count; i++) {
    const void *value = NULL;
    MUST(TRITONSERVER_InferenceResponseParameter(response, i, &name, &type, &value));
    EXPECT(TRITONSERVER_InferenceResponseParameter, name != NULL && value != NULL);
  }
  return NULL;
}

static Error *infer(TRITONSERVER_Server *server, const void *data)
{
  static Call call = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};
  call.started = call.allocated = call.freed = call.released = 0;
  call.final = false;
  call.response = NULL;
  TRITONSERVER_ResponseAllocator *allocator = NULL;
  TRITONSERVER_InferenceRequest *request = NULL, *dropped = NULL;
  MUST(TRITONSERVER_InferenceRequestNew(&dropped, server, "inner", 1));
  TRY(describe(dropped, data));
  MUST(TRITONSERVER_InferenceRequestDelete(dropped));

  MUST(TRITONSERVER_ResponseAllocatorNew(&allocator, allocate, free_output, start));
  MUST(TRITONSERVER_ResponseAllocatorSetQueryFunction(allocator, query));
  MUST(TRITONSERVER_ResponseAllocatorSetBufferAttributesFunction(allocator, attributes));
  MUST(TRITONSERVER_InferenceRequestNew(&request, server, "inner", -1));
  TRY(describe(request, data));
  MUST(TRITONSERVER_InferenceRequestSetReleaseCallback(request, request_released, &call));
  MUST(TRITONSERVER_InferenceRequestSetResponseCallback(request, allocator, &call, response_arrived, &call));
  /* Before it is sent there is nothing to cancel. */
  REFUSES(ANY, TRITONSERVER_InferenceRequestCancel(request));
  MUST(TRITONSERVER_ServerInferAsync(server, request, NULL));
  pthread_mutex_lock(&call.lock);
  while (!call.final || call.released == 0) pthread_cond_wait(&call.changed, &call.lock);
  pthread_mutex_unlock(&call.lock);

  EXPECT(TRITONSERVER_ServerInferAsync, call.response != NULL && call.released == 1);
  EXPECT(TRITONSERVER_ResponseAllocatorNew, call.allocated == 1 && call.freed == 0 && call.started == 1);
  TRY(read_response(call.response, &call, data));
  MUST(TRITONSERVER_InferenceResponseDelete(call.response));
  EXPECT(TRITONSERVER_InferenceResponseDelete, call.freed == 1);
  MUST(TRITONSERVER_ResponseAllocatorDelete(allocator));
  return NULL;
}

Error *check_nested(TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request **requests, uint32_t count)
{
  TRITONBACKEND_Model *handle = NULL;
  void *state = NULL;
  MUST(TRITONBACKEND_ModelInstanceModel(instance, &handle));
  MUST(TRITONBACKEND_ModelState(handle, &state));
  const Model *model = state;
  EXPECT(TRITONBACKEND_ModelInstanceExecute, count == 1);
  const void *data = NULL;
  uint64_t bytes = 0;
  TRY(server(model->server));
  TRY(check_own_request(model->server));
  /* The host's requests and the backend's own are of one type. */
  bool cancelled = true;
  MUST(TRITONSERVER_InferenceRequestIsCancelled((TRITONSERVER_InferenceRequest *)*requests, &cancelled));
  EXPECT(TRITONSERVER_InferenceRequestIsCancelled, !cancelled);
  TRY(read_input(*requests, "INPUT0", &data, &bytes));
  TRY(infer(model->server, data));
  TRY(echo(*requests, FINAL));
  MUST(TRITONBACKEND_RequestRelease(*requests, RELEASE_ALL));
  return NULL;
}
