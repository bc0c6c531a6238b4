/* Checks of response factories: a decoupled model whose responses come from a thread of its own, after the request was released. */

#include "checks.h"

#include <pthread.h>
#include <stdlib.h>

typedef struct {
  TRITONBACKEND_ModelInstance *instance;
  TRITONBACKEND_ResponseFactory *factory;
  int32_t values[4];
} Work;

/* Keyed by the running number of the response. */
static Error *report(const Work *work, uint64_t start, bool empty)
{
  TRITONBACKEND_ModelInstanceResponseStatistics *statistics = NULL;
  uint64_t end = now();
  MUST(TRITONBACKEND_ModelInstanceResponseStatisticsNew(&statistics));
  MUST(TRITONBACKEND_ModelInstanceResponseStatisticsSetModelInstance(statistics, work->instance));
  MUST(TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseFactory(statistics, work->factory));
  MUST(TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseStart(statistics, start));
  if (!empty) MUST(TRITONBACKEND_ModelInstanceResponseStatisticsSetComputeOutputStart(statistics, start));
  MUST(TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseEnd(statistics, end));
  MUST(TRITONBACKEND_ModelInstanceResponseStatisticsSetError(statistics, NULL));
  MUST(TRITONBACKEND_ModelInstanceReportResponseStatistics(statistics));
  if (empty) {
    /* Times in the wrong order. */
    MUST(TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseEnd(statistics, 1));
    REFUSES(ANY, TRITONBACKEND_ModelInstanceReportResponseStatistics(statistics));
  }
  MUST(TRITONBACKEND_ModelInstanceResponseStatisticsDelete(statistics));
  return NULL;
}

/* values[0] responses, each with its number. */
static Error *respond(const Work *work)
{
  static const int64_t SHAPE[] = {1, 4};
  bool cancelled = true;
  MUST(TRITONBACKEND_ResponseFactoryIsCancelled(work->factory, &cancelled));
  EXPECT(TRITONBACKEND_ResponseFactoryIsCancelled, !cancelled);
  for (int32_t i = 0; i < work->values[0]; i++) {
    TRITONBACKEND_Response *response = NULL;
    uint64_t start = now();
    int32_t values[4] = {i, work->values[1], work->values[2], work->values[3]};
    MUST(TRITONBACKEND_ResponseNewFromFactory(&response, work->factory));
    TRY(put_output(response, "OUTPUT0", TYPE_INT32, SHAPE, 2, values, sizeof values));
    MUST(TRITONBACKEND_ResponseSend(response, 0, NULL));
    TRY(report(work, start, false));
  }
  uint64_t start = now();
  MUST(TRITONBACKEND_ResponseFactorySendFlags(work->factory, FINAL));
  TRY(report(work, start, true));
  return NULL;
}

static void *run(void *argument)
{
  Work *work = argument;
  Error *error = respond(work);
  if (error != NULL) {
    /* No request is left that could get the error. */
    TRITONSERVER_LogMessage(LOG_ERROR, __FILE__, __LINE__, TRITONSERVER_ErrorMessage(error));
    TRITONBACKEND_Response *response = NULL;
    if (TRITONBACKEND_ResponseNewFromFactory(&response, work->factory) == NULL) {
      TRITONBACKEND_ResponseSend(response, FINAL, error);
    }
    TRITONSERVER_ErrorDelete(error);
  }
  TRITONBACKEND_ResponseFactoryDelete(work->factory);
  free(work);
  return NULL;
}

Error *check_factory(TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request **requests, uint32_t count)
{
  uint64_t start = now();
  for (uint32_t i = 0; i < count; i++) {
    const void *data = NULL;
    uint64_t bytes = 0;
    pthread_t thread;
    TRITONBACKEND_ResponseFactory *factory = NULL;
    TRY(read_input(requests[i], "INPUT0", &data, &bytes));
    EXPECT(TRITONBACKEND_InputBuffer, bytes == 16);
    MUST(TRITONBACKEND_ResponseFactoryNew(&factory, requests[i]));
    Work *work = calloc(1, sizeof *work);
    work->instance = instance;
    work->factory = factory;
    memcpy(work->values, data, sizeof work->values);
    MUST(TRITONBACKEND_ModelInstanceReportStatistics(instance, requests[i], true, start, start, start, start));
    MUST(TRITONBACKEND_RequestRelease(requests[i], RELEASE_ALL));
    if (pthread_create(&thread, NULL, run, work) != 0) return failed(__FILE__, __LINE__, "no thread");
    pthread_detach(thread);
  }
  MUST(TRITONBACKEND_ModelInstanceReportBatchStatistics(instance, count, start, start, start, start));
  return NULL;
}
