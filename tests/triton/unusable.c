/* Backends that cannot be used: NO_EXECUTE lacks the required entry point, UNKNOWN_IMPORT needs a function that no release has,
 * NEXT_MAJOR wants version 2 of the interface. */

#include "backend.h"
#include "server.h"

#include <stdio.h>

Error *TRITONBACKEND_FromAnotherTime(void);

Error *TRITONBACKEND_Initialize(TRITONBACKEND_Backend *backend)
{
  (void)backend;
#ifdef UNKNOWN_IMPORT
  return TRITONBACKEND_FromAnotherTime();
#endif
#ifdef NEXT_MAJOR
  uint32_t major = 0, minor = 0;
  char text[64];
  Error *error = TRITONBACKEND_ApiVersion(&major, &minor);
  if (error != NULL) return error;
  snprintf(text, sizeof text, "needs version 2 of the interface, found %u.%u", major, minor);
  return major == 2 ? NULL : TRITONSERVER_ErrorNew(CODE_UNSUPPORTED, text);
#endif
  return NULL;
}

#ifndef NO_EXECUTE
Error *TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request **requests, uint32_t count)
{
  (void)instance, (void)requests, (void)count;
  return NULL;
}
#endif
