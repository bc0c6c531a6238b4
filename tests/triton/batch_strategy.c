/* A batching strategy: the name of the model selects what it does. `requests_N`: batches of at most N requests; `bytes_N`: of at most N
 * bytes of input; `refuses`: the model is refused. A request whose INPUT0 begins with 13 is refused. With NO_FINALIZE a
 * function is missing. */

#include "check.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct TRITONBACKEND_Batcher {
  uint32_t requests;
  uint64_t bytes;
} TRITONBACKEND_Batcher;

/* What is left of the limits for a batch. */
typedef TRITONBACKEND_Batcher Left;

Error *TRITONBACKEND_ModelBatcherInitialize(TRITONBACKEND_Batcher **batcher, TRITONBACKEND_Model *model)
{
  const char *name = NULL;
  MUST(TRITONBACKEND_ModelName(model, &name));
  if (strcmp(name, "refuses") == 0) return TRITONSERVER_ErrorNew(CODE_INTERNAL, "no batches for this model");
  TRITONBACKEND_Batcher *made = malloc(sizeof *made);
  unsigned limit = 0;
  made->requests = sscanf(name, "requests_%u", &limit) == 1 ? limit : UINT32_MAX;
  made->bytes = sscanf(name, "bytes_%u", &limit) == 1 ? limit : UINT64_MAX;
  *batcher = made;
  return NULL;
}

Error *TRITONBACKEND_ModelBatcherFinalize(TRITONBACKEND_Batcher *batcher)
{
  free(batcher);
  return NULL;
}

Error *TRITONBACKEND_ModelBatchInitialize(const TRITONBACKEND_Batcher *batcher, void **batch)
{
  Left *left = malloc(sizeof *left);
  *left = *batcher;
  *batch = left;
  return NULL;
}

Error *TRITONBACKEND_ModelBatchIncludeRequest(TRITONBACKEND_Request *request, void *batch, bool *include)
{
  Left *left = batch;
  const void *data = NULL;
  uint64_t bytes = 0;
  TRY(read_input(request, "INPUT0", &data, &bytes));
  if (bytes >= 4 && *(const int32_t *)data == 13) {
    return TRITONSERVER_ErrorNew(CODE_INVALID_ARG, "requests with 13 are not batched");
  }
  *include = left->requests > 0 && left->bytes >= bytes;
  if (*include) {
    left->requests--;
    left->bytes -= bytes;
  }
  return NULL;
}

#ifndef NO_FINALIZE
Error *TRITONBACKEND_ModelBatchFinalize(void *batch)
{
  free(batch);
  return NULL;
}
#endif
