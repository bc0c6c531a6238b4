/* A backend that calls every function of Triton's backend interface and checks what comes back: libtriton_contract.so. The parameter
 * `check` of a model's configuration selects what is checked when the model is opened or executed; without it the model copies INPUT0
 * to OUTPUT0. A failed check is an error that names function and expectation. */

#include "checks.h"

#include <pthread.h>
#include <stdlib.h>

/* Of models and instances that are open; the end of the backend must find none. */
static pthread_mutex_t LOCK = PTHREAD_MUTEX_INITIALIZER;
static int OPEN_MODELS, OPEN_INSTANCES;

static void count(int *what, int change)
{
  pthread_mutex_lock(&LOCK);
  *what += change;
  pthread_mutex_unlock(&LOCK);
}

static Error *model_of(TRITONBACKEND_ModelInstance *instance, const Model **model)
{
  TRITONBACKEND_Model *handle = NULL;
  void *state = NULL;
  MUST(TRITONBACKEND_ModelInstanceModel(instance, &handle));
  MUST(TRITONBACKEND_ModelState(handle, &state));
  *model = state;
  return NULL;
}

Error *TRITONBACKEND_Initialize(TRITONBACKEND_Backend *backend)
{
  return check_backend(backend);
}

Error *TRITONBACKEND_GetBackendAttribute(TRITONBACKEND_Backend *backend, TRITONBACKEND_BackendAttribute *attribute)
{
  (void)backend;
  return check_attribute(attribute);
}

Error *TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *model)
{
  void *state = NULL;
  TRY(check_model(model));
  MUST(TRITONBACKEND_ModelState(model, &state));
  const Model *opened = state;
  const char *check = opened->check;
  if (strcmp(check, "values") == 0) TRY(check_values());
  if (strcmp(check, "unused") == 0) TRY(check_unused());
  if (strcmp(check, "complete") == 0 && opened->completing) TRY(check_complete(model));
  count(&OPEN_MODELS, 1);
  return NULL;
}

Error *TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance *instance)
{
  TRY(check_instance(instance));
  count(&OPEN_INSTANCES, 1);
  return NULL;
}

static Error *copy(TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request **requests, uint32_t count)
{
  uint64_t start = now();
  for (uint32_t i = 0; i < count; i++) TRY(echo(requests[i], FINAL));
  uint64_t end = now();
  for (uint32_t i = 0; i < count; i++) {
    MUST(TRITONBACKEND_ModelInstanceReportStatistics(instance, requests[i], true, start, start, end, end));
    MUST(TRITONBACKEND_RequestRelease(requests[i], RELEASE_ALL));
  }
  MUST(TRITONBACKEND_ModelInstanceReportBatchStatistics(instance, count, start, start, end, end));
  return NULL;
}

Error *TRITONBACKEND_ModelInstanceExecute(
    TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request **requests, uint32_t count)
{
  static const struct {
    const char *name;
    Error *(*run)(TRITONBACKEND_ModelInstance *, TRITONBACKEND_Request **, uint32_t);
  } CHECKS[] = {{"requests", check_requests}, {"responses", check_responses}, {"factory", check_factory},
                {"state", check_state},       {"nested", check_nested},       {"cancel", check_cancel}};
  const Model *model = NULL;
  TRY(model_of(instance, &model));
  for (size_t i = 0; i < sizeof CHECKS / sizeof *CHECKS; i++) {
    if (strcmp(model->check, CHECKS[i].name) == 0) return CHECKS[i].run(instance, requests, count);
  }
  return copy(instance, requests, count);
}

Error *TRITONBACKEND_ModelInstanceReady(TRITONBACKEND_ModelInstance *instance)
{
  const Model *model = NULL;
  return model_of(instance, &model);
}

Error *TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance *instance)
{
  void *state = NULL;
  MUST(TRITONBACKEND_ModelInstanceState(instance, &state));
  EXPECT(TRITONBACKEND_ModelInstanceState, state != NULL);
  count(&OPEN_INSTANCES, -1);
  return NULL;
}

Error *TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model *model)
{
  void *state = NULL;
  MUST(TRITONBACKEND_ModelState(model, &state));
  free(state);
  count(&OPEN_MODELS, -1);
  return NULL;
}

Error *TRITONBACKEND_Finalize(TRITONBACKEND_Backend *backend)
{
  void *state = NULL;
  MUST(TRITONBACKEND_BackendState(backend, &state));
  EXPECT(TRITONBACKEND_BackendState, state != NULL);
  EXPECT(TRITONBACKEND_Finalize, OPEN_MODELS == 0 && OPEN_INSTANCES == 0);
  return TRITONSERVER_LogMessage(LOG_INFO, __FILE__, __LINE__, "contract: finalised with no open model");
}
