/* Types, enumerations and opaque objects of Triton's backend interface, as the probe backends of this folder use them. Written from
 * the published names and values. Enumerations are `int` here: a host must take every value. */

#ifndef TRITON_VALUES_H
#define TRITON_VALUES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OBJECT(name) typedef struct name name

OBJECT(TRITONSERVER_BufferAttributes);
OBJECT(TRITONSERVER_Error);
OBJECT(TRITONSERVER_InferenceRequest);
OBJECT(TRITONSERVER_InferenceResponse);
OBJECT(TRITONSERVER_InferenceTrace);
OBJECT(TRITONSERVER_Message);
OBJECT(TRITONSERVER_Metric);
OBJECT(TRITONSERVER_MetricArgs);
OBJECT(TRITONSERVER_MetricFamily);
OBJECT(TRITONSERVER_Parameter);
OBJECT(TRITONSERVER_ResponseAllocator);
OBJECT(TRITONSERVER_Server);
OBJECT(TRITONBACKEND_Backend);
OBJECT(TRITONBACKEND_BackendAttribute);
OBJECT(TRITONBACKEND_Input);
OBJECT(TRITONBACKEND_MemoryManager);
OBJECT(TRITONBACKEND_Model);
OBJECT(TRITONBACKEND_ModelInstance);
OBJECT(TRITONBACKEND_ModelInstanceResponseStatistics);
OBJECT(TRITONBACKEND_Output);
OBJECT(TRITONBACKEND_Request);
OBJECT(TRITONBACKEND_Response);
OBJECT(TRITONBACKEND_ResponseFactory);
OBJECT(TRITONBACKEND_State);

#undef OBJECT

typedef TRITONSERVER_Error Error;

enum { CODE_UNKNOWN, CODE_INTERNAL, CODE_NOT_FOUND, CODE_INVALID_ARG, CODE_UNAVAILABLE, CODE_UNSUPPORTED, CODE_ALREADY_EXISTS, CODE_CANCELLED };

enum {
  TYPE_INVALID,
  TYPE_BOOL,
  TYPE_UINT8,
  TYPE_UINT16,
  TYPE_UINT32,
  TYPE_UINT64,
  TYPE_INT8,
  TYPE_INT16,
  TYPE_INT32,
  TYPE_INT64,
  TYPE_FP16,
  TYPE_FP32,
  TYPE_FP64,
  TYPE_BYTES,
  TYPE_BF16
};

enum { MEMORY_CPU, MEMORY_CPU_PINNED, MEMORY_GPU };
enum { KIND_AUTO, KIND_CPU, KIND_GPU, KIND_MODEL };
enum { LOG_INFO, LOG_WARN, LOG_ERROR, LOG_VERBOSE };
enum { PARAMETER_STRING, PARAMETER_INT, PARAMETER_BOOL, PARAMETER_DOUBLE, PARAMETER_BYTES };
enum { METRIC_COUNTER, METRIC_GAUGE, METRIC_HISTOGRAM };
enum { SEQUENCE_START = 1, SEQUENCE_END = 2 };
enum { RELEASE_ALL = 1, RELEASE_RESCHEDULE = 2 };
enum { FINAL = 1 };
enum { ONE_TO_ONE = 1, DECOUPLED = 2 };

/* Memory of the outputs of a nested inference comes from its caller. */
typedef Error *(*AllocateOutput)(
    TRITONSERVER_ResponseAllocator *, const char *tensor, size_t bytes, int kind, int64_t id, void *user, void **buffer,
    void **buffer_user, int *actual_kind, int64_t *actual_id);
typedef Error *(*ReleaseOutput)(
    TRITONSERVER_ResponseAllocator *, void *buffer, void *buffer_user, size_t bytes, int kind, int64_t id);
typedef Error *(*StartOutput)(TRITONSERVER_ResponseAllocator *, void *user);
typedef Error *(*QueryOutput)(
    TRITONSERVER_ResponseAllocator *, void *user, const char *tensor, size_t *bytes, int *kind, int64_t *id);
typedef Error *(*BufferAttributesOf)(
    TRITONSERVER_ResponseAllocator *, const char *tensor, TRITONSERVER_BufferAttributes *, void *user, void *buffer_user);
typedef void (*RequestReleased)(TRITONSERVER_InferenceRequest *, uint32_t flags, void *user);
typedef void (*ResponseArrived)(TRITONSERVER_InferenceResponse *, uint32_t flags, void *user);

#endif
