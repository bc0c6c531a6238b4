/* A library without TRITONBACKEND_ModelInstanceExecute; with NEWER, one that imports what no version of the interface has. */
#include "triton.h"

TRITONSERVER_Error* TRITONBACKEND_FromTheFuture(void);

TRITONSERVER_Error*
TRITONBACKEND_Initialize(TRITONBACKEND_Backend* backend)
{
  (void)backend;
#ifdef NEWER
  return TRITONBACKEND_FromTheFuture();
#else
  return NULL;
#endif
}
