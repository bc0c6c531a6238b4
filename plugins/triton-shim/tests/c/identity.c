/* Copies INPUT to OUTPUT. The request's id selects what else it does:
 *   "fail"        one request is answered with an error
 *   "refuse"      Execute returns an error
 *   "forget"      the request is released without a response
 *   "twice"       a second response after the final one, a second release: the errors become the response's parameters
 *   "stream"      three responses from a thread, after the request was released
 *   "interleave"  two responses are made before the first is sent
 *   "overtaken:HOW"  while a response is being built another one is sent, and FINAL by HOW: flags, delete, final or error
 *   "begun"       Execute returns an error after a response that is not the final one
 *   "keep"        Execute returns an error while a factory is left
 *   "lie"         an output of another size than its shape
 */
#include "triton.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CHECK(call)                          \
  do {                                       \
    TRITONSERVER_Error* error_ = (call);     \
    if (error_ != NULL) return error_;       \
  } while (0)

TRITONSERVER_Error*
TRITONBACKEND_Initialize(TRITONBACKEND_Backend* backend)
{
  uint32_t major, minor;
  CHECK(TRITONBACKEND_ApiVersion(&major, &minor));
  if (major != 1 || minor != 19) return TRITONSERVER_ErrorNew(5, "wrong version");
  TRITONSERVER_Message* message;
  const char* json;
  size_t size;
  CHECK(TRITONBACKEND_BackendConfig(backend, &message));
  CHECK(TRITONSERVER_MessageSerializeToJson(message, &json, &size));
  if (json[size] != 0 || strstr(json, "\"backend-directory\"") == NULL) return TRITONSERVER_ErrorNew(1, json);
  if (strstr(json, "\"refuse\":\"yes\"") != NULL) return TRITONSERVER_ErrorNew(3, "refused by its settings");
  return NULL;
}

TRITONSERVER_Error*
TRITONBACKEND_GetBackendAttribute(TRITONBACKEND_Backend* backend, TRITONBACKEND_BackendAttribute* attribute)
{
  (void)backend;
  CHECK(TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(attribute, 1, 2, NULL, 0));
  return TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading(attribute, true);
}

TRITONSERVER_Error*
TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model* model)
{
  TRITONSERVER_Message* message;
  const char* json;
  size_t size;
  CHECK(TRITONBACKEND_ModelConfig(model, 1, &message));
  CHECK(TRITONSERVER_MessageSerializeToJson(message, &json, &size));
  bool refused = strstr(json, "refuse-me") != NULL;
  CHECK(TRITONSERVER_MessageDelete(message));
  return refused ? TRITONSERVER_ErrorNew(3, "refused by its configuration") : NULL;
}

static TRITONSERVER_Error*
fill(TRITONBACKEND_Response* response, TRITONBACKEND_Input* input, uint64_t shorter)
{
  int dtype, memory = 0;
  int64_t id = 0;
  const int64_t* shape;
  uint32_t rank, buffers;
  uint64_t bytes, part;
  const void* from;
  void* to;
  TRITONBACKEND_Output* output;
  CHECK(TRITONBACKEND_InputProperties(input, NULL, &dtype, &shape, &rank, &bytes, &buffers));
  CHECK(TRITONBACKEND_ResponseOutput(response, &output, "OUTPUT", dtype, shape, rank));
  CHECK(TRITONBACKEND_OutputBuffer(output, &to, bytes - shorter, &memory, &id));
  for (uint32_t i = 0; i < buffers; ++i) {
    CHECK(TRITONBACKEND_InputBuffer(input, i, &from, &part, &memory, &id));
    memcpy(to, from, part);
    to = (char*)to + part;
  }
  return NULL;
}

struct stream {
  TRITONBACKEND_ResponseFactory* factory;
  int64_t value;
};

static void*
stream_main(void* arg)
{
  struct stream* stream = arg;
  for (int i = 0; i < 3; ++i) {
    TRITONBACKEND_Response* response;
    TRITONBACKEND_Output* output;
    void* to;
    int memory = 0;
    int64_t id = 0, shape[1] = {1};
    TRITONBACKEND_ResponseNewFromFactory(&response, stream->factory);
    TRITONBACKEND_ResponseOutput(response, &output, "OUTPUT", 9, shape, 1);
    TRITONBACKEND_OutputBuffer(output, &to, 8, &memory, &id);
    *(int64_t*)to = stream->value + i;
    TRITONBACKEND_ResponseSend(response, 0, NULL);
  }
  TRITONBACKEND_ResponseFactorySendFlags(stream->factory, 1);
  TRITONBACKEND_ResponseFactoryDelete(stream->factory);
  free(stream);
  return NULL;
}

/* What a factory says that outlives a failed execution: whether the request was cancelled. */
static _Atomic int KEPT = -1;

static void*
keep_main(void* factory)
{
  bool cancelled = false;
  usleep(50000);
  TRITONSERVER_Error* error = TRITONBACKEND_ResponseFactoryIsCancelled(factory, &cancelled);
  KEPT = error == NULL ? cancelled : 2;
  TRITONBACKEND_ResponseFactoryDelete(factory);
  return NULL;
}

static TRITONSERVER_Error*
keep(TRITONBACKEND_Request* request)
{
  TRITONBACKEND_ResponseFactory* factory;
  pthread_t thread;
  CHECK(TRITONBACKEND_ResponseFactoryNew(&factory, request));
  pthread_create(&thread, NULL, keep_main, factory);
  pthread_detach(thread);
  return TRITONSERVER_ErrorNew(4, "not now");
}

static void
note(TRITONBACKEND_Response* response, const char* name, TRITONSERVER_Error* error)
{
  TRITONBACKEND_ResponseSetStringParameter(response, name, error == NULL ? "" : TRITONSERVER_ErrorMessage(error));
  if (error != NULL) TRITONSERVER_ErrorDelete(error);
}

/* The response `first` was begun before another one was. */
static TRITONSERVER_Error*
overtaken(TRITONBACKEND_Request* request, TRITONBACKEND_Input* input, TRITONBACKEND_Response* first, const char* how)
{
  TRITONBACKEND_ResponseFactory* factory;
  TRITONBACKEND_Response* second;
  CHECK(TRITONBACKEND_ResponseFactoryNew(&factory, request));
  CHECK(fill(first, input, 0));
  CHECK(TRITONBACKEND_ResponseSetStringParameter(first, "which", "first"));
  CHECK(TRITONBACKEND_ResponseNew(&second, request));
  CHECK(fill(second, input, 0));
  CHECK(TRITONBACKEND_ResponseSetStringParameter(second, "which", "second"));
  CHECK(TRITONBACKEND_ResponseSend(second, 0, NULL));
  if (strcmp(how, "flags") == 0 || strcmp(how, "delete") == 0) {
    CHECK(TRITONBACKEND_ResponseFactorySendFlags(factory, 1));
    TRITONSERVER_Error* late = TRITONBACKEND_ResponseNew(&second, request);
    if (late == NULL) abort();
    TRITONSERVER_ErrorDelete(late);
  }
  if (strcmp(how, "flags") == 0) {
    CHECK(TRITONBACKEND_ResponseSend(first, 0, NULL));
  } else if (strcmp(how, "delete") == 0) {
    CHECK(TRITONBACKEND_ResponseDelete(first));
  } else if (strcmp(how, "final") == 0) {
    CHECK(TRITONBACKEND_ResponseSend(first, 1, NULL));
  } else {
    TRITONSERVER_Error* error = TRITONSERVER_ErrorNew(3, "out of ink");
    CHECK(TRITONBACKEND_ResponseSend(first, 1, error));
    TRITONSERVER_ErrorDelete(error);
  }
  return TRITONBACKEND_ResponseFactoryDelete(factory);
}

static TRITONSERVER_Error*
one(TRITONBACKEND_ModelInstance* instance, TRITONBACKEND_Request* request)
{
  const char* id;
  TRITONBACKEND_Input* input;
  TRITONBACKEND_Response* response;
  CHECK(TRITONBACKEND_RequestId(request, &id));
  CHECK(TRITONBACKEND_RequestInputByIndex(request, 0, &input));
  if (strcmp(id, "forget") == 0) return TRITONBACKEND_RequestRelease(request, 1);
  if (strcmp(id, "stream") == 0) {
    struct stream* stream = malloc(sizeof *stream);
    const void* from;
    uint64_t bytes;
    int memory = 0;
    int64_t device = 0;
    pthread_t thread;
    CHECK(TRITONBACKEND_InputBuffer(input, 0, &from, &bytes, &memory, &device));
    stream->value = *(const int64_t*)from;
    CHECK(TRITONBACKEND_ResponseFactoryNew(&stream->factory, request));
    CHECK(TRITONBACKEND_RequestRelease(request, 1));
    pthread_create(&thread, NULL, stream_main, stream);
    pthread_detach(thread);
    return NULL;
  }
  CHECK(TRITONBACKEND_ResponseNew(&response, request));
  if (strcmp(id, "fail") == 0) {
    TRITONSERVER_Error* error = TRITONSERVER_ErrorNew(3, "one of the batch");
    CHECK(TRITONBACKEND_ResponseSend(response, 1, error));
    TRITONSERVER_ErrorDelete(error);
  } else if (strcmp(id, "interleave") == 0) {
    TRITONBACKEND_Response* second;
    CHECK(fill(response, input, 0));
    CHECK(TRITONBACKEND_ResponseNew(&second, request));
    CHECK(fill(second, input, 0));
    CHECK(TRITONBACKEND_ResponseSetStringParameter(second, "which", "second"));
    CHECK(TRITONBACKEND_ResponseSend(second, 1, NULL));
    CHECK(TRITONBACKEND_ResponseSetStringParameter(response, "which", "first"));
    CHECK(TRITONBACKEND_ResponseSend(response, 0, NULL));
  } else if (strncmp(id, "overtaken:", 10) == 0) {
    CHECK(overtaken(request, input, response, id + 10));
  } else if (strcmp(id, "kept") == 0) {
    CHECK(fill(response, input, 0));
    CHECK(TRITONBACKEND_ResponseSetIntParameter(response, "cancelled", KEPT));
    CHECK(TRITONBACKEND_ResponseSend(response, 1, NULL));
  } else if (strcmp(id, "lie") == 0) {
    TRITONSERVER_Error* error = fill(response, input, 1);
    CHECK(TRITONBACKEND_ResponseSend(response, 1, error));
    TRITONSERVER_ErrorDelete(error);
  } else if (strcmp(id, "misuse") == 0) {
    TRITONBACKEND_Response* deleted;
    uint32_t count;
    CHECK(fill(response, input, 0));
    CHECK(TRITONBACKEND_ResponseNew(&deleted, request));
    CHECK(TRITONBACKEND_ResponseDelete(deleted));
    note(response, "freed", TRITONBACKEND_ResponseDelete(deleted));
    note(response, "null", TRITONBACKEND_RequestInputCount(NULL, &count));
    note(response, "kind", TRITONBACKEND_RequestInputCount((TRITONBACKEND_Request*)instance, &count));
    note(response, "foreign", TRITONBACKEND_RequestInputCount((TRITONBACKEND_Request*)&count, &count));
    note(response, "result", TRITONBACKEND_RequestInputCount(request, NULL));
    note(response, "flags", TRITONBACKEND_RequestRelease(request, 2));
    note(response, "set", TRITONBACKEND_ModelSetConfig(NULL, 1, NULL));
    CHECK(TRITONBACKEND_ResponseSend(response, 1, NULL));
    TRITONSERVER_Error* late = TRITONBACKEND_ResponseNew(&response, request);
    if (late == NULL) abort();
    TRITONSERVER_LogMessage(0, "identity.c", 1, TRITONSERVER_ErrorMessage(late));
    TRITONSERVER_ErrorDelete(late);
  } else {
    CHECK(fill(response, input, 0));
    CHECK(TRITONBACKEND_ResponseSend(response, 1, NULL));
  }
  CHECK(TRITONBACKEND_ModelInstanceReportStatistics(instance, request, true, 1, 2, 3, 4));
  return TRITONBACKEND_RequestRelease(request, 1);
}

TRITONSERVER_Error*
TRITONBACKEND_ModelInstanceExecute(
    TRITONBACKEND_ModelInstance* instance, TRITONBACKEND_Request** requests, const uint32_t count)
{
  for (uint32_t i = 0; i < count; ++i) {
    const char* id;
    CHECK(TRITONBACKEND_RequestId(requests[i], &id));
    if (strcmp(id, "refuse") == 0) return TRITONSERVER_ErrorNew(4, "not now");
    if (strcmp(id, "keep") == 0) return keep(requests[i]);
    if (strcmp(id, "begun") == 0) {
      TRITONBACKEND_Input* input;
      TRITONBACKEND_Response* response;
      CHECK(TRITONBACKEND_RequestInputByIndex(requests[i], 0, &input));
      CHECK(TRITONBACKEND_ResponseNew(&response, requests[i]));
      CHECK(fill(response, input, 0));
      CHECK(TRITONBACKEND_ResponseSend(response, 0, NULL));
      return TRITONSERVER_ErrorNew(4, "not now");
    }
  }
  for (uint32_t i = 0; i < count; ++i) CHECK(one(instance, requests[i]));
  return TRITONBACKEND_ModelInstanceReportBatchStatistics(instance, count, 1, 2, 3, 4);
}
