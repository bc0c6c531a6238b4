/* The checks of the probe backend. The parameter `check` of a model's configuration selects one; each uses the entry points that it
 * needs. */

#ifndef TRITON_CHECKS_H
#define TRITON_CHECKS_H

#include "check.h"

/* What the probe keeps of a model: the state pointer of the host's object. */
typedef struct {
  char check[32];
  /* The host lets the backend complete the configuration. */
  bool completing;
  char name[64];
  TRITONSERVER_Server *server;
  TRITONBACKEND_MemoryManager *memory;
} Model;

/* In TRITONBACKEND_Initialize and TRITONBACKEND_GetBackendAttribute. */
Error *check_backend(TRITONBACKEND_Backend *backend);
Error *check_attribute(TRITONBACKEND_BackendAttribute *attribute);
/* In TRITONBACKEND_ModelInitialize. */
Error *check_values(void);
Error *check_model(TRITONBACKEND_Model *model);
Error *check_complete(TRITONBACKEND_Model *model);
Error *check_unused(void);
/* In TRITONBACKEND_ModelInstanceExecute, before a request is sent. */
Error *check_own_request(TRITONSERVER_Server *server);
/* In TRITONBACKEND_ModelInstanceInitialize. */
Error *check_instance(TRITONBACKEND_ModelInstance *instance);
/* In TRITONBACKEND_ModelInstanceExecute. A check that fails returns its error, with all requests still the host's. */
Error *check_requests(TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request **requests, uint32_t count);
Error *check_responses(TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request **requests, uint32_t count);
Error *check_factory(TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request **requests, uint32_t count);
Error *check_state(TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request **requests, uint32_t count);
Error *check_nested(TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request **requests, uint32_t count);
/* Waits until the request is cancelled, and says so. */
Error *check_cancel(TRITONBACKEND_ModelInstance *instance, TRITONBACKEND_Request **requests, uint32_t count);

#endif
