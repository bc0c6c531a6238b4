/* What the host exports for backends: the names of tritonbackend.h. */

#ifndef TRITON_BACKEND_H
#define TRITON_BACKEND_H

#include "values.h"

/* Version, backend, attributes, memory. */
Error *TRITONBACKEND_ApiVersion(uint32_t *major, uint32_t *minor);
Error *TRITONBACKEND_BackendName(TRITONBACKEND_Backend *, const char **name);
Error *TRITONBACKEND_BackendConfig(TRITONBACKEND_Backend *, TRITONSERVER_Message **config);
Error *TRITONBACKEND_BackendArtifacts(TRITONBACKEND_Backend *, int *kind, const char **location);
Error *TRITONBACKEND_BackendMemoryManager(TRITONBACKEND_Backend *, TRITONBACKEND_MemoryManager **);
Error *TRITONBACKEND_BackendState(TRITONBACKEND_Backend *, void **state);
Error *TRITONBACKEND_BackendSetState(TRITONBACKEND_Backend *, void *state);
Error *TRITONBACKEND_BackendExecutionPolicy(TRITONBACKEND_Backend *, int *policy);
Error *TRITONBACKEND_BackendSetExecutionPolicy(TRITONBACKEND_Backend *, int policy);
Error *TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(
    TRITONBACKEND_BackendAttribute *, int kind, uint64_t count, const uint64_t *devices, uint64_t device_count);
Error *TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading(TRITONBACKEND_BackendAttribute *, bool enabled);
Error *TRITONBACKEND_MemoryManagerAllocate(
    TRITONBACKEND_MemoryManager *, void **buffer, int kind, int64_t id, uint64_t bytes);
Error *TRITONBACKEND_MemoryManagerFree(TRITONBACKEND_MemoryManager *, void *buffer, int kind, int64_t id);

/* Model and instance. */
Error *TRITONBACKEND_ModelName(TRITONBACKEND_Model *, const char **name);
Error *TRITONBACKEND_ModelVersion(TRITONBACKEND_Model *, uint64_t *version);
Error *TRITONBACKEND_ModelRepository(TRITONBACKEND_Model *, int *kind, const char **location);
Error *TRITONBACKEND_ModelConfig(TRITONBACKEND_Model *, uint32_t config_version, TRITONSERVER_Message **config);
Error *TRITONBACKEND_ModelAutoCompleteConfig(TRITONBACKEND_Model *, bool *enabled);
Error *TRITONBACKEND_ModelSetConfig(TRITONBACKEND_Model *, uint32_t config_version, TRITONSERVER_Message *config);
Error *TRITONBACKEND_ModelServer(TRITONBACKEND_Model *, TRITONSERVER_Server **server);
Error *TRITONBACKEND_ModelBackend(TRITONBACKEND_Model *, TRITONBACKEND_Backend **backend);
Error *TRITONBACKEND_ModelState(TRITONBACKEND_Model *, void **state);
Error *TRITONBACKEND_ModelSetState(TRITONBACKEND_Model *, void *state);
Error *TRITONBACKEND_ModelReportMemoryUsage(TRITONBACKEND_Model *, TRITONSERVER_BufferAttributes **usage, uint32_t n);
Error *TRITONBACKEND_ModelInstanceName(TRITONBACKEND_ModelInstance *, const char **name);
Error *TRITONBACKEND_ModelInstanceKind(TRITONBACKEND_ModelInstance *, int *kind);
Error *TRITONBACKEND_ModelInstanceDeviceId(TRITONBACKEND_ModelInstance *, int32_t *device);
Error *TRITONBACKEND_ModelInstanceHostPolicy(TRITONBACKEND_ModelInstance *, TRITONSERVER_Message **policy);
Error *TRITONBACKEND_ModelInstanceIsPassive(TRITONBACKEND_ModelInstance *, bool *passive);
Error *TRITONBACKEND_ModelInstanceProfileCount(TRITONBACKEND_ModelInstance *, uint32_t *count);
Error *TRITONBACKEND_ModelInstanceProfileName(TRITONBACKEND_ModelInstance *, uint32_t index, const char **name);
Error *TRITONBACKEND_ModelInstanceSecondaryDeviceCount(TRITONBACKEND_ModelInstance *, uint32_t *count);
Error *TRITONBACKEND_ModelInstanceSecondaryDeviceProperties(
    TRITONBACKEND_ModelInstance *, uint32_t index, const char **kind, int64_t *id);
Error *TRITONBACKEND_ModelInstanceModel(TRITONBACKEND_ModelInstance *, TRITONBACKEND_Model **model);
Error *TRITONBACKEND_ModelInstanceState(TRITONBACKEND_ModelInstance *, void **state);
Error *TRITONBACKEND_ModelInstanceSetState(TRITONBACKEND_ModelInstance *, void *state);
Error *TRITONBACKEND_ModelInstanceReportMemoryUsage(
    TRITONBACKEND_ModelInstance *, TRITONSERVER_BufferAttributes **usage, uint32_t n);

/* Request and input. */
Error *TRITONBACKEND_RequestId(TRITONBACKEND_Request *, const char **id);
Error *TRITONBACKEND_RequestCorrelationId(TRITONBACKEND_Request *, uint64_t *id);
Error *TRITONBACKEND_RequestCorrelationIdString(TRITONBACKEND_Request *, const char **id);
Error *TRITONBACKEND_RequestFlags(TRITONBACKEND_Request *, uint32_t *flags);
Error *TRITONBACKEND_InferenceRequestTimeoutMicroseconds(TRITONBACKEND_Request *, uint64_t *timeout);
Error *TRITONBACKEND_RequestIsCancelled(TRITONBACKEND_Request *, bool *cancelled);
Error *TRITONBACKEND_RequestTrace(TRITONBACKEND_Request *, TRITONSERVER_InferenceTrace **trace);
Error *TRITONBACKEND_RequestParameterCount(TRITONBACKEND_Request *, uint32_t *count);
Error *TRITONBACKEND_RequestParameter(
    TRITONBACKEND_Request *, uint32_t index, const char **key, int *type, const void **value);
Error *TRITONBACKEND_RequestInputCount(TRITONBACKEND_Request *, uint32_t *count);
Error *TRITONBACKEND_RequestInputName(TRITONBACKEND_Request *, uint32_t index, const char **name);
Error *TRITONBACKEND_RequestInput(TRITONBACKEND_Request *, const char *name, TRITONBACKEND_Input **input);
Error *TRITONBACKEND_RequestInputByIndex(TRITONBACKEND_Request *, uint32_t index, TRITONBACKEND_Input **input);
Error *TRITONBACKEND_RequestOutputCount(TRITONBACKEND_Request *, uint32_t *count);
Error *TRITONBACKEND_RequestOutputName(TRITONBACKEND_Request *, uint32_t index, const char **name);
Error *TRITONBACKEND_RequestOutputBufferProperties(
    TRITONBACKEND_Request *, const char *name, size_t *bytes, int *kind, int64_t *id);
Error *TRITONBACKEND_RequestRelease(TRITONBACKEND_Request *, uint32_t flags);
Error *TRITONBACKEND_InputProperties(
    TRITONBACKEND_Input *, const char **name, int *type, const int64_t **shape, uint32_t *dims, uint64_t *bytes,
    uint32_t *buffers);
Error *TRITONBACKEND_InputPropertiesForHostPolicy(
    TRITONBACKEND_Input *, const char *policy, const char **name, int *type, const int64_t **shape, uint32_t *dims,
    uint64_t *bytes, uint32_t *buffers);
Error *TRITONBACKEND_InputBuffer(
    TRITONBACKEND_Input *, uint32_t index, const void **buffer, uint64_t *bytes, int *kind, int64_t *id);
Error *TRITONBACKEND_InputBufferForHostPolicy(
    TRITONBACKEND_Input *, const char *policy, uint32_t index, const void **buffer, uint64_t *bytes, int *kind,
    int64_t *id);
Error *TRITONBACKEND_InputBufferAttributes(
    TRITONBACKEND_Input *, uint32_t index, const void **buffer, TRITONSERVER_BufferAttributes **attributes);

/* Response, output, factory. */
Error *TRITONBACKEND_ResponseFactoryNew(TRITONBACKEND_ResponseFactory **factory, TRITONBACKEND_Request *);
Error *TRITONBACKEND_ResponseFactoryDelete(TRITONBACKEND_ResponseFactory *);
Error *TRITONBACKEND_ResponseFactorySendFlags(TRITONBACKEND_ResponseFactory *, uint32_t flags);
Error *TRITONBACKEND_ResponseFactoryIsCancelled(TRITONBACKEND_ResponseFactory *, bool *cancelled);
Error *TRITONBACKEND_ResponseNew(TRITONBACKEND_Response **response, TRITONBACKEND_Request *);
Error *TRITONBACKEND_ResponseNewFromFactory(TRITONBACKEND_Response **response, TRITONBACKEND_ResponseFactory *);
Error *TRITONBACKEND_ResponseDelete(TRITONBACKEND_Response *);
Error *TRITONBACKEND_ResponseOutput(
    TRITONBACKEND_Response *, TRITONBACKEND_Output **output, const char *name, int type, const int64_t *shape,
    uint32_t dims);
Error *TRITONBACKEND_OutputBuffer(TRITONBACKEND_Output *, void **buffer, uint64_t bytes, int *kind, int64_t *id);
Error *TRITONBACKEND_OutputBufferAttributes(TRITONBACKEND_Output *, TRITONSERVER_BufferAttributes **attributes);
Error *TRITONBACKEND_ResponseSetStringParameter(TRITONBACKEND_Response *, const char *key, const char *value);
Error *TRITONBACKEND_ResponseSetIntParameter(TRITONBACKEND_Response *, const char *key, int64_t value);
Error *TRITONBACKEND_ResponseSetBoolParameter(TRITONBACKEND_Response *, const char *key, bool value);
Error *TRITONBACKEND_ResponseSetDoubleParameter(TRITONBACKEND_Response *, const char *key, double value);
Error *TRITONBACKEND_ResponseSend(TRITONBACKEND_Response *, uint32_t flags, Error *error);
Error *TRITONBACKEND_InferenceResponseOutput(
    TRITONBACKEND_Response *, uint32_t index, const char **name, int *type, const int64_t **shape, uint64_t *dims);
Error *TRITONBACKEND_InferenceResponseOutputByName(
    TRITONBACKEND_Response *, const char *name, int *type, const int64_t **shape, uint64_t *dims);

/* Statistics and sequence state. */
Error *TRITONBACKEND_ModelInstanceReportStatistics(
    TRITONBACKEND_ModelInstance *, TRITONBACKEND_Request *, bool success, uint64_t start, uint64_t compute_start,
    uint64_t compute_end, uint64_t end);
Error *TRITONBACKEND_ModelInstanceReportBatchStatistics(
    TRITONBACKEND_ModelInstance *, uint64_t batch_size, uint64_t start, uint64_t compute_start, uint64_t compute_end,
    uint64_t end);
Error *TRITONBACKEND_ModelInstanceResponseStatisticsNew(TRITONBACKEND_ModelInstanceResponseStatistics **);
Error *TRITONBACKEND_ModelInstanceResponseStatisticsDelete(TRITONBACKEND_ModelInstanceResponseStatistics *);
Error *TRITONBACKEND_ModelInstanceResponseStatisticsSetModelInstance(
    TRITONBACKEND_ModelInstanceResponseStatistics *, TRITONBACKEND_ModelInstance *);
Error *TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseFactory(
    TRITONBACKEND_ModelInstanceResponseStatistics *, TRITONBACKEND_ResponseFactory *);
Error *TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseStart(
    TRITONBACKEND_ModelInstanceResponseStatistics *, uint64_t ns);
Error *TRITONBACKEND_ModelInstanceResponseStatisticsSetComputeOutputStart(
    TRITONBACKEND_ModelInstanceResponseStatistics *, uint64_t ns);
Error *TRITONBACKEND_ModelInstanceResponseStatisticsSetResponseEnd(
    TRITONBACKEND_ModelInstanceResponseStatistics *, uint64_t ns);
Error *TRITONBACKEND_ModelInstanceResponseStatisticsSetError(TRITONBACKEND_ModelInstanceResponseStatistics *, Error *);
Error *TRITONBACKEND_ModelInstanceReportResponseStatistics(TRITONBACKEND_ModelInstanceResponseStatistics *);
Error *TRITONBACKEND_StateNew(
    TRITONBACKEND_State **state, TRITONBACKEND_Request *, const char *name, int type, const int64_t *shape,
    uint32_t dims);
Error *TRITONBACKEND_StateBuffer(TRITONBACKEND_State *, void **buffer, uint64_t bytes, int *kind, int64_t *id);
Error *TRITONBACKEND_StateBufferAttributes(TRITONBACKEND_State *, TRITONSERVER_BufferAttributes **attributes);
Error *TRITONBACKEND_StateUpdate(TRITONBACKEND_State *);

/* What a backend exports. */
Error *TRITONBACKEND_Initialize(TRITONBACKEND_Backend *);
Error *TRITONBACKEND_GetBackendAttribute(TRITONBACKEND_Backend *, TRITONBACKEND_BackendAttribute *);
Error *TRITONBACKEND_ModelInitialize(TRITONBACKEND_Model *);
Error *TRITONBACKEND_ModelInstanceInitialize(TRITONBACKEND_ModelInstance *);
Error *TRITONBACKEND_ModelInstanceReady(TRITONBACKEND_ModelInstance *);
Error *TRITONBACKEND_ModelInstanceExecute(TRITONBACKEND_ModelInstance *, TRITONBACKEND_Request **, uint32_t count);
Error *TRITONBACKEND_ModelInstanceFinalize(TRITONBACKEND_ModelInstance *);
Error *TRITONBACKEND_ModelFinalize(TRITONBACKEND_Model *);
Error *TRITONBACKEND_Finalize(TRITONBACKEND_Backend *);

#endif
