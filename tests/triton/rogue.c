/* A backend that misuses the interface on command: libtriton_NAME.so. The id of a request is the command; the request is then
 * answered with OUTPUT0 = 5, or with the error that the host has returned for the misuse.
 *
 * A backend whose name is `rogue_HOW_ENTRY` misbehaves in that entry point: HOW is `hang`, `exit`, `crash`, `error` or `invalid`. */

#include "check.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* The last error of the host; NULL if there was none. */
static Error *LAST;

/* Of a request that Execute has failed with an error. */
static TRITONBACKEND_ResponseFactory *SURVIVOR;

static void note(Error *error)
{
  if (LAST != NULL) TRITONSERVER_ErrorDelete(LAST);
  LAST = error;
}

static const char *name_of(TRITONBACKEND_Backend *backend)
{
  const char *name = NULL;
  Error *error = TRITONBACKEND_BackendName(backend, &name);
  if (error != NULL) TRITONSERVER_ErrorDelete(error);
  return name == NULL ? "" : name;
}

/* What this backend does in an entry point. */
static Error *enter(TRITONBACKEND_Backend *backend, const char *entry)
{
  char how[16] = "", where[32] = "";
  if (sscanf(name_of(backend), "rogue_%15[a-z]_%31s", how, where) != 2 || strcmp(where, entry) != 0) return NULL;
  fprintf(stderr, "rogue: %s in %s\n", how, entry);
  if (strcmp(how, "hang") == 0) {
    for (;;) pause();
  }
  if (strcmp(how, "exit") == 0) _exit(3);
  if (strcmp(how, "crash") == 0) *(volatile int *)8 = 1;
  if (strcmp(how, "invalid") == 0) return (Error *)0x1234;
  return TRITONSERVER_ErrorNew(CODE_INTERNAL, "out of ink");
}

static Error *enter_model(TRITONBACKEND_Model *model, const char *entry)
{
  TRITONBACKEND_Backend *backend = NULL;
  MUST(TRITONBACKEND_ModelBackend(model, &backend));
  return enter(backend, entry);
}

static Error *enter_instance(TRITONBACKEND_ModelInstance *instance, const char *entry)
{
  TRITONBACKEND_Model *model = NULL;
  MUST(TRITONBACKEND_ModelInstanceModel(instance, &model));
  return enter_model(model, entry);
}

Error *TRITONBACKEND_Initialize(TRITONBACKEND_Backend *backend) { return enter(backend, "initialize"); }

Error *TRITONBACKEND_GetBackendAttribute(TRITONBACKEND_Backend *backend, TRITONBACKEND_BackendAttribute *attribute)
{
  (void)attribute;
  return enter(backend, "attribute");
}

Error *TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *model) { return enter_model(model, "model"); }

Error *TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance *instance)
{
  return enter_instance(instance, "instance");
}

Error *TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance *instance)
{
  return enter_instance(instance, "closeinstance");
}

Error *TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model *model) { return enter_model(model, "closemodel"); }

Error *TRITONBACKEND_Finalize(TRITONBACKEND_Backend *backend) { return enter(backend, "close"); }

/* Begins a response with OUTPUT0 = 5. */
static TRITONBACKEND_Response *begin(TRITONBACKEND_Request *request)
{
  const int32_t five = 5;
  const int64_t shape = 1;
  TRITONBACKEND_Response *response = NULL;
  note(TRITONBACKEND_ResponseNew(&response, request));
  if (response != NULL) note(put_output(response, "OUTPUT0", TYPE_INT32, &shape, 1, &five, sizeof five));
  return response;
}

/* Sends the final response: the noted error, or 5. */
static void finish(TRITONBACKEND_Request *request)
{
  Error *error = LAST;
  LAST = NULL;
  TRITONBACKEND_Response *response = NULL;
  if (error == NULL) {
    response = begin(request);
  } else {
    note(TRITONBACKEND_ResponseNew(&response, request));
  }
  note(TRITONBACKEND_ResponseSend(response, FINAL, error));
  if (error != NULL) TRITONSERVER_ErrorDelete(error);
}

/* An output of this shape and size, sent as the final response. */
static void send_output(TRITONBACKEND_Request *request, const int64_t *shape, uint32_t dims, uint64_t bytes)
{
  TRITONBACKEND_Response *response = NULL;
  TRITONBACKEND_Output *output = NULL;
  void *buffer = NULL;
  int kind = MEMORY_CPU;
  int64_t id = 0;
  note(TRITONBACKEND_ResponseNew(&response, request));
  note(TRITONBACKEND_ResponseOutput(response, &output, "OUTPUT0", TYPE_INT32, shape, dims));
  if (LAST == NULL) note(TRITONBACKEND_OutputBuffer(output, &buffer, bytes, &kind, &id));
  Error *failure = LAST;
  LAST = NULL;
  note(TRITONBACKEND_ResponseSend(response, FINAL, failure));
  if (failure != NULL) TRITONSERVER_ErrorDelete(failure);
}

/* A nested request whose input has so many bytes, in a piece or two, and who says so. */
enum { WITH_DATA, WITH_ATTRIBUTES };

static Error *append(TRITONBACKEND_ModelInstance *instance, int how, uint64_t first, uint64_t second)
{
  static const int32_t FIVE = 5;
  const int64_t shape = 1;
  TRITONBACKEND_Model *model = NULL;
  TRITONSERVER_Server *server = NULL;
  TRITONSERVER_InferenceRequest *nested = NULL;
  TRITONSERVER_BufferAttributes *attributes = NULL;
  const char *name = NULL;
  MUST(TRITONBACKEND_ModelInstanceModel(instance, &model));
  MUST(TRITONBACKEND_ModelServer(model, &server));
  MUST(TRITONBACKEND_ModelName(model, &name));
  MUST(TRITONSERVER_InferenceRequestNew(&nested, server, name, -1));
  MUST(TRITONSERVER_InferenceRequestAddInput(nested, "INPUT0", TYPE_INT32, &shape, 1));
  Error *error = NULL;
  if (how == WITH_ATTRIBUTES) {
    MUST(TRITONSERVER_BufferAttributesNew(&attributes));
    MUST(TRITONSERVER_BufferAttributesSetByteSize(attributes, first));
    error = TRITONSERVER_InferenceRequestAppendInputDataWithBufferAttributes(nested, "INPUT0", &FIVE, attributes);
    MUST(TRITONSERVER_BufferAttributesDelete(attributes));
  } else {
    error = TRITONSERVER_InferenceRequestAppendInputData(nested, "INPUT0", &FIVE, first, MEMORY_CPU, 0);
    if (error == NULL) {
      error = TRITONSERVER_InferenceRequestAppendInputData(nested, "INPUT0", &FIVE, second, MEMORY_CPU, 0);
    }
  }
  MUST(TRITONSERVER_InferenceRequestDelete(nested));
  return error;
}

/* Adds to a gauge through a handle of its own, at the same time as another instance of this process. */
enum { ADDITIONS = 20000 };

static Error *add_to_gauge(void)
{
  static _Atomic unsigned ARRIVED;
  TRITONSERVER_MetricFamily *family = NULL;
  TRITONSERVER_Metric *metric = NULL;
  MUST(TRITONSERVER_MetricFamilyNew(&family, METRIC_GAUGE, "rogue_gauge", "Additions."));
  MUST(TRITONSERVER_MetricNew(&metric, family, NULL, 0));
  unsigned other = ARRIVED++ | 1;
  while (ARRIVED <= other) sched_yield();
  for (int i = 0; i < ADDITIONS; i++) MUST(TRITONSERVER_MetricIncrement(metric, 1));
  return NULL;
}

/* Whether the request is still to be released. */
/* Adds a point to the trace of a request, and prints its context. */
static Error *report_trace(TRITONBACKEND_Request *request)
{
  TRITONSERVER_InferenceTrace *trace = NULL, *again = NULL;
  const char *context = NULL;
  MUST(TRITONBACKEND_RequestTrace(request, &trace));
  MUST(TRITONBACKEND_RequestTrace(request, &again));
  if (trace != again) return TRITONSERVER_ErrorNew(CODE_INTERNAL, "two traces");
  MUST(TRITONSERVER_InferenceTraceReportActivity(trace, now(), "ROGUE_POINT"));
  MUST(TRITONSERVER_InferenceTraceContext(trace, &context));
  fprintf(stderr, "rogue: context '%s'\n", context);
  return NULL;
}

enum { RELEASE, RELEASED };

static int run(const char *command, TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request *request)
{
#define COMMAND(name) if (strcmp(command, name) == 0)
  uint32_t count = 0;
  int64_t one = 1, negative[2] = {-4, 1}, huge[2] = {1ll << 40, 1ll << 40};
  long local[64] = {0};
  TRITONBACKEND_Response *response = NULL;
  TRITONSERVER_InferenceTrace *trace = NULL;

  COMMAND("null") note(TRITONBACKEND_RequestInputCount(NULL, &count));
  COMMAND("null_result") note(TRITONBACKEND_RequestInputCount(request, NULL));
  COMMAND("stack") note(TRITONBACKEND_RequestInputCount((TRITONBACKEND_Request *)local, &count));
  COMMAND("wild") note(TRITONBACKEND_RequestInputCount((TRITONBACKEND_Request *)0xdeadbeef1234, &count));
  COMMAND("inside") note(TRITONBACKEND_RequestInputCount((TRITONBACKEND_Request *)((char *)request + 8), &count));
  COMMAND("other_kind") note(TRITONBACKEND_RequestInputCount((TRITONBACKEND_Request *)instance, &count));
  COMMAND("null_text") note(TRITONBACKEND_RequestInput(request, NULL, (TRITONBACKEND_Input **)local));
  COMMAND("unknown_input") note(TRITONBACKEND_RequestInput(request, "NONE", (TRITONBACKEND_Input **)local));
  COMMAND("far_input") note(TRITONBACKEND_RequestInputByIndex(request, 4000000000u, (TRITONBACKEND_Input **)local));
  COMMAND("long_message")
    note(TRITONSERVER_MessageNewFromSerializedJson((TRITONSERVER_Message **)local, "{}", (size_t)-1));
  COMMAND("no_json") note(TRITONSERVER_MessageNewFromSerializedJson((TRITONSERVER_Message **)local, "{", 1));
  COMMAND("allocate_all")
  {
    TRITONBACKEND_MemoryManager *manager = NULL;
    TRITONBACKEND_Model *model = NULL;
    TRITONBACKEND_Backend *backend = NULL;
    void *buffer = NULL;
    note(TRITONBACKEND_ModelInstanceModel(instance, &model));
    note(TRITONBACKEND_ModelBackend(model, &backend));
    note(TRITONBACKEND_BackendMemoryManager(backend, &manager));
    note(TRITONBACKEND_MemoryManagerAllocate(manager, &buffer, MEMORY_CPU, 0, 1ull << 60));
  }
  COMMAND("use_after_delete")
  {
    TRITONSERVER_BufferAttributes *attributes = NULL;
    size_t bytes = 0;
    note(TRITONSERVER_BufferAttributesNew(&attributes));
    note(TRITONSERVER_BufferAttributesDelete(attributes));
    note(TRITONSERVER_BufferAttributesByteSize(attributes, &bytes));
  }
  COMMAND("delete_twice")
  {
    TRITONSERVER_BufferAttributes *attributes = NULL;
    note(TRITONSERVER_BufferAttributesNew(&attributes));
    note(TRITONSERVER_BufferAttributesDelete(attributes));
    note(TRITONSERVER_BufferAttributesDelete(attributes));
  }
  COMMAND("append_long") note(append(instance, WITH_DATA, UINT64_MAX, 0));
  COMMAND("append_sum") note(append(instance, WITH_DATA, 1ull << 62, 1ull << 62));
  COMMAND("append_attributes") note(append(instance, WITH_ATTRIBUTES, 1ull << 63, 0));
  COMMAND("long_parameter")
  {
    if (TRITONSERVER_ParameterBytesNew("file:1/model", local, 1ull << 63) != NULL) {
      note(TRITONSERVER_ErrorNew(CODE_INTERNAL, "a parameter of 2^63 bytes was made"));
    }
  }
  COMMAND("null_parameter")
  {
    if (TRITONSERVER_ParameterBytesNew("file:1/model", NULL, 8) != NULL) {
      note(TRITONSERVER_ErrorNew(CODE_INTERNAL, "a parameter at a null pointer was made"));
    }
  }
  COMMAND("no_message")
  {
    Error *error = TRITONSERVER_ErrorNew(CODE_INTERNAL, NULL);
    note(error);
  }
  COMMAND("misuse_often")
  {
    for (int i = 0; i < 2000; i++) note(TRITONBACKEND_RequestInputCount(NULL, &count));
    note(NULL);
  }
  COMMAND("add_to_gauge") note(add_to_gauge());
  COMMAND("use_survivor")
  {
    bool cancelled = true;
    note(TRITONBACKEND_ResponseFactoryIsCancelled(SURVIVOR, &cancelled));
    if (LAST == NULL && cancelled) note(TRITONSERVER_ErrorNew(CODE_INTERNAL, "the request was not cancelled"));
    if (LAST == NULL) note(TRITONBACKEND_ResponseNewFromFactory(&response, SURVIVOR));
    Error *error = TRITONBACKEND_ResponseFactoryDelete(SURVIVOR);
    if (error != NULL) note(error);
  }
  COMMAND("flood")
  {
    static char line[1000];
    memset(line, 'x', sizeof line - 2);
    line[sizeof line - 2] = '\n';
    for (int i = 0; i < 4000; i++) fputs(line, stderr);
  }

  /* These answer the request themselves. */
  COMMAND("send_twice")
  {
    response = begin(request);
    note(TRITONBACKEND_ResponseSend(response, FINAL, NULL));
    note(TRITONBACKEND_ResponseSend(response, FINAL, NULL));
    return RELEASE;
  }
  COMMAND("after_final")
  {
    note(TRITONBACKEND_ResponseSend(begin(request), FINAL, NULL));
    note(TRITONBACKEND_ResponseNew(&response, request));
    return RELEASE;
  }
  COMMAND("release_twice")
  {
    finish(request);
    note(TRITONBACKEND_RequestRelease(request, RELEASE_ALL));
    note(TRITONBACKEND_RequestRelease(request, RELEASE_ALL));
    return RELEASED;
  }
  COMMAND("use_after_release")
  {
    finish(request);
    note(TRITONBACKEND_RequestRelease(request, RELEASE_ALL));
    note(TRITONBACKEND_RequestInputCount(request, &count));
    return RELEASED;
  }
  COMMAND("release_first")
  {
    response = begin(request);
    note(TRITONBACKEND_RequestRelease(request, RELEASE_ALL));
    note(TRITONBACKEND_ResponseSend(response, FINAL, NULL));
    return RELEASED;
  }
  COMMAND("never_release")
  {
    finish(request);
    return RELEASED;
  }
  COMMAND("no_response") return RELEASE;
  COMMAND("silent") return RELEASED;
  COMMAND("wrong_flags")
  {
    finish(request);
    note(TRITONBACKEND_RequestRelease(request, 64));
    return RELEASE;
  }
  COMMAND("too_small") return send_output(request, &one, 1, 2), RELEASE;
  COMMAND("too_large") return send_output(request, &one, 1, 4096), RELEASE;
  COMMAND("all_memory") return send_output(request, &one, 1, 1ull << 60), RELEASE;
  COMMAND("negative_shape") return send_output(request, negative, 2, 16), RELEASE;
  COMMAND("huge_shape") return send_output(request, huge, 2, 16), RELEASE;
  COMMAND("null_shape") return send_output(request, NULL, 3, 16), RELEASE;
  COMMAND("many_dims") return send_output(request, NULL, 4000000000u, 16), RELEASE;
  COMMAND("no_buffer")
  {
    TRITONBACKEND_Output *output = NULL;
    note(TRITONBACKEND_ResponseNew(&response, request));
    note(TRITONBACKEND_ResponseOutput(response, &output, "OUTPUT0", TYPE_INT32, &one, 1));
    note(TRITONBACKEND_ResponseSend(response, FINAL, NULL));
    return RELEASE;
  }
  COMMAND("wrong_type")
  {
    note(TRITONBACKEND_ResponseNew(&response, request));
    note(put_output(response, "OUTPUT0", 1000, &one, 1, local, 4));
    Error *failure = LAST;
    LAST = NULL;
    note(TRITONBACKEND_ResponseSend(response, FINAL, failure));
    if (failure != NULL) TRITONSERVER_ErrorDelete(failure);
    return RELEASE;
  }
  COMMAND("trace") note(report_trace(request));
  COMMAND("trace_after_release")
  {
    note(TRITONBACKEND_RequestTrace(request, &trace));
    response = begin(request);
    note(TRITONBACKEND_RequestRelease(request, RELEASE_ALL));
    note(TRITONSERVER_InferenceTraceReportActivity(trace, now(), "TOO_LATE"));
    Error *failure = LAST;
    LAST = NULL;
    note(TRITONBACKEND_ResponseSend(response, FINAL, failure));
    if (failure != NULL) TRITONSERVER_ErrorDelete(failure);
    return RELEASED;
  }
  COMMAND("exit") _exit(3);
  COMMAND("crash") *(volatile int *)8 = 1;
  COMMAND("abort") abort();
  COMMAND("hang")
  {
    for (;;) pause();
  }
  finish(request);
  return RELEASE;
#undef COMMAND
}

Error *TRITONBACKEND_ModelInstanceExecute(
    TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request **requests, uint32_t count)
{
  for (uint32_t i = 0; i < count; i++) {
    const char *id = NULL;
    char command[64];
    MUST(TRITONBACKEND_RequestId(requests[i], &id));
    snprintf(command, sizeof command, "%s", id == NULL ? "" : id);
    note(NULL);
    if (strcmp(command, "invalid_error") == 0) return (Error *)0x1234;
    if (strcmp(command, "error_with_survivor") == 0) {
      MUST(TRITONBACKEND_ResponseFactoryNew(&SURVIVOR, requests[i]));
      return TRITONSERVER_ErrorNew(CODE_INTERNAL, "out of ink");
    }
    if (strcmp(command, "error_after_send") == 0) {
      finish(requests[i]);
      return TRITONSERVER_ErrorNew(CODE_INTERNAL, "too late");
    }
    if (run(command, instance, requests[i]) == RELEASE) note(TRITONBACKEND_RequestRelease(requests[i], RELEASE_ALL));
  }
  return NULL;
}
