/* Checks of this server's own answers, which are not Triton's: functions that it refuses, and those of traces, which it writes itself
 * so that a backend's is null. */

#include "checks.h"
#include "unused.h"

#define X(name) Error *name(void *, void *, void *, void *, void *, void *);
TRITON_UNUSED(X)
#undef X

Error *check_unused(void)
{
  TRITONSERVER_InferenceTrace *child = UNSET;
  const char *context = NULL;
#define X(name)                                                        \
  do {                                                                 \
    MISUSE(name(NULL, NULL, NULL, NULL, NULL, NULL)); \
  } while (0);
  TRITON_UNUSED(X)
#undef X
  MUST(TRITONSERVER_InferenceTraceReportActivity(NULL, now(), "point"));
  MUST(TRITONSERVER_InferenceTraceSpawnChildTrace(NULL, &child));
  EXPECT(TRITONSERVER_InferenceTraceSpawnChildTrace, child == NULL);
  MUST(TRITONSERVER_InferenceTraceContext(NULL, &context));
  EXPECT_TEXT(TRITONSERVER_InferenceTraceContext, context, "");
  MUST(TRITONSERVER_InferenceTraceDelete(NULL));
  return NULL;
}
