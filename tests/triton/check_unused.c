/* Checks of the names that no backend calls: each answers, and refuses what it does not do. */

#include "checks.h"
#include "unused.h"

#define X(name) Error *name(void *, void *, void *, void *, void *, void *);
TRITON_UNUSED(X)
#undef X

Error *TRITONSERVER_ApiVersion(uint32_t *major, uint32_t *minor);
Error *TRITONREPOAGENT_ApiVersion(uint32_t *major, uint32_t *minor);
Error *TRITONCACHE_ApiVersion(uint32_t *major, uint32_t *minor);
const char *TRITONSERVER_ParameterTypeString(int type);
const char *TRITONSERVER_InferenceTraceLevelString(int level);
const char *TRITONSERVER_InferenceTraceActivityString(int activity);

Error *check_unused(void)
{
  uint32_t major = 0, minor = 0;
#define X(name)                                                        \
  do {                                                                 \
    MISUSE(name(NULL, NULL, NULL, NULL, NULL, NULL)); \
  } while (0);
  TRITON_UNUSED(X)
#undef X
  MUST(TRITONSERVER_ApiVersion(&major, &minor));
  EXPECT(TRITONSERVER_ApiVersion, major == 1);
  MUST(TRITONREPOAGENT_ApiVersion(&major, &minor));
  EXPECT(TRITONREPOAGENT_ApiVersion, major == 0 || major == 1);
  MUST(TRITONCACHE_ApiVersion(&major, &minor));
  EXPECT(TRITONCACHE_ApiVersion, major == 0 || major == 1);
  EXPECT_TEXT(TRITONSERVER_ParameterTypeString, TRITONSERVER_ParameterTypeString(PARAMETER_INT), "INT");
  EXPECT(TRITONSERVER_InferenceTraceLevelString, TRITONSERVER_InferenceTraceLevelString(4) != NULL);
  EXPECT(TRITONSERVER_InferenceTraceActivityString, TRITONSERVER_InferenceTraceActivityString(0) != NULL);
  return NULL;
}
