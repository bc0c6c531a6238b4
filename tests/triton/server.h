/* What the host exports for backends besides: the names of tritonserver.h that it does not refuse. `unused.h` lists the others. */

#ifndef TRITON_SERVER_H
#define TRITON_SERVER_H

#include "values.h"

/* Versions, errors, log, texts, messages. */
Error *TRITONSERVER_ApiVersion(uint32_t *major, uint32_t *minor);
Error *TRITONREPOAGENT_ApiVersion(uint32_t *major, uint32_t *minor);
Error *TRITONCACHE_ApiVersion(uint32_t *major, uint32_t *minor);
const char *TRITONSERVER_ParameterTypeString(int type);
Error *TRITONSERVER_ErrorNew(int code, const char *message);
void TRITONSERVER_ErrorDelete(Error *);
int TRITONSERVER_ErrorCode(Error *);
const char *TRITONSERVER_ErrorCodeString(Error *);
const char *TRITONSERVER_ErrorMessage(Error *);
bool TRITONSERVER_LogIsEnabled(int level);
Error *TRITONSERVER_LogMessage(int level, const char *file, int line, const char *message);
const char *TRITONSERVER_DataTypeString(int type);
int TRITONSERVER_StringToDataType(const char *text);
uint32_t TRITONSERVER_DataTypeByteSize(int type);
const char *TRITONSERVER_MemoryTypeString(int kind);
const char *TRITONSERVER_InstanceGroupKindString(int kind);
Error *TRITONSERVER_MessageNewFromSerializedJson(TRITONSERVER_Message **message, const char *base, size_t bytes);
Error *TRITONSERVER_MessageSerializeToJson(TRITONSERVER_Message *, const char **base, size_t *bytes);
Error *TRITONSERVER_MessageDelete(TRITONSERVER_Message *);

/* Buffer attributes and parameters. */
Error *TRITONSERVER_BufferAttributesNew(TRITONSERVER_BufferAttributes **attributes);
Error *TRITONSERVER_BufferAttributesDelete(TRITONSERVER_BufferAttributes *);
Error *TRITONSERVER_BufferAttributesSetByteSize(TRITONSERVER_BufferAttributes *, size_t bytes);
Error *TRITONSERVER_BufferAttributesSetMemoryType(TRITONSERVER_BufferAttributes *, int kind);
Error *TRITONSERVER_BufferAttributesSetMemoryTypeId(TRITONSERVER_BufferAttributes *, int64_t id);
Error *TRITONSERVER_BufferAttributesSetCudaIpcHandle(TRITONSERVER_BufferAttributes *, void *handle);
Error *TRITONSERVER_BufferAttributesByteSize(TRITONSERVER_BufferAttributes *, size_t *bytes);
Error *TRITONSERVER_BufferAttributesMemoryType(TRITONSERVER_BufferAttributes *, int *kind);
Error *TRITONSERVER_BufferAttributesMemoryTypeId(TRITONSERVER_BufferAttributes *, int64_t *id);
Error *TRITONSERVER_BufferAttributesCudaIpcHandle(TRITONSERVER_BufferAttributes *, void **handle);
TRITONSERVER_Parameter *TRITONSERVER_ParameterNew(const char *name, int type, const void *value);
TRITONSERVER_Parameter *TRITONSERVER_ParameterBytesNew(const char *name, const void *base, uint64_t bytes);
void TRITONSERVER_ParameterDelete(TRITONSERVER_Parameter *);

/* Metrics and traces. */
Error *TRITONSERVER_MetricFamilyNew(TRITONSERVER_MetricFamily **family, int kind, const char *name, const char *help);
Error *TRITONSERVER_MetricFamilyDelete(TRITONSERVER_MetricFamily *);
Error *TRITONSERVER_GetMetricFamilyKind(TRITONSERVER_MetricFamily *, int *kind);
Error *TRITONSERVER_GetMetricKind(TRITONSERVER_Metric *, int *kind);
Error *TRITONSERVER_MetricNew(
    TRITONSERVER_Metric **metric, TRITONSERVER_MetricFamily *, const TRITONSERVER_Parameter **labels, uint64_t count);
Error *TRITONSERVER_MetricNewWithArgs(
    TRITONSERVER_Metric **metric, TRITONSERVER_MetricFamily *, const TRITONSERVER_Parameter **labels, uint64_t count,
    const TRITONSERVER_MetricArgs *);
Error *TRITONSERVER_MetricDelete(TRITONSERVER_Metric *);
Error *TRITONSERVER_MetricValue(TRITONSERVER_Metric *, double *value);
Error *TRITONSERVER_MetricIncrement(TRITONSERVER_Metric *, double value);
Error *TRITONSERVER_MetricSet(TRITONSERVER_Metric *, double value);
Error *TRITONSERVER_MetricObserve(TRITONSERVER_Metric *, double value);
Error *TRITONSERVER_MetricArgsNew(TRITONSERVER_MetricArgs **args);
Error *TRITONSERVER_MetricArgsSetHistogram(TRITONSERVER_MetricArgs *, const double *buckets, uint64_t count);
Error *TRITONSERVER_MetricArgsDelete(TRITONSERVER_MetricArgs *);
Error *TRITONSERVER_InferenceTraceReportActivity(TRITONSERVER_InferenceTrace *, uint64_t ns, const char *activity);
Error *TRITONSERVER_InferenceTraceSpawnChildTrace(
    TRITONSERVER_InferenceTrace *, TRITONSERVER_InferenceTrace **child);
Error *TRITONSERVER_InferenceTraceDelete(TRITONSERVER_InferenceTrace *);
const char *TRITONSERVER_InferenceTraceLevelString(int level);
const char *TRITONSERVER_InferenceTraceActivityString(int activity);
Error *TRITONSERVER_InferenceTraceContext(TRITONSERVER_InferenceTrace *, const char **context);

/* Nested inference. */
Error *TRITONSERVER_InferenceRequestNew(
    TRITONSERVER_InferenceRequest **request, TRITONSERVER_Server *, const char *model, int64_t version);
Error *TRITONSERVER_InferenceRequestDelete(TRITONSERVER_InferenceRequest *);
Error *TRITONSERVER_InferenceRequestSetId(TRITONSERVER_InferenceRequest *, const char *id);
Error *TRITONSERVER_InferenceRequestSetFlags(TRITONSERVER_InferenceRequest *, uint32_t flags);
Error *TRITONSERVER_InferenceRequestSetCorrelationId(TRITONSERVER_InferenceRequest *, uint64_t id);
Error *TRITONSERVER_InferenceRequestSetCorrelationIdString(TRITONSERVER_InferenceRequest *, const char *id);
Error *TRITONSERVER_InferenceRequestSetTimeoutMicroseconds(TRITONSERVER_InferenceRequest *, uint64_t timeout);
Error *TRITONSERVER_InferenceRequestSetStringParameter(
    TRITONSERVER_InferenceRequest *, const char *key, const char *value);
Error *TRITONSERVER_InferenceRequestSetIntParameter(TRITONSERVER_InferenceRequest *, const char *key, int64_t value);
Error *TRITONSERVER_InferenceRequestSetBoolParameter(TRITONSERVER_InferenceRequest *, const char *key, bool value);
Error *TRITONSERVER_InferenceRequestAddInput(
    TRITONSERVER_InferenceRequest *, const char *name, int type, const int64_t *shape, uint64_t dims);
Error *TRITONSERVER_InferenceRequestAppendInputData(
    TRITONSERVER_InferenceRequest *, const char *name, const void *base, size_t bytes, int kind, int64_t id);
Error *TRITONSERVER_InferenceRequestAppendInputDataWithHostPolicy(
    TRITONSERVER_InferenceRequest *, const char *name, const void *base, size_t bytes, int kind, int64_t id,
    const char *policy);
Error *TRITONSERVER_InferenceRequestAppendInputDataWithBufferAttributes(
    TRITONSERVER_InferenceRequest *, const char *name, const void *base, TRITONSERVER_BufferAttributes *);
Error *TRITONSERVER_InferenceRequestAddRequestedOutput(TRITONSERVER_InferenceRequest *, const char *name);
Error *TRITONSERVER_InferenceRequestSetReleaseCallback(TRITONSERVER_InferenceRequest *, RequestReleased, void *user);
Error *TRITONSERVER_InferenceRequestSetResponseCallback(
    TRITONSERVER_InferenceRequest *, TRITONSERVER_ResponseAllocator *, void *allocator_user, ResponseArrived,
    void *user);
Error *TRITONSERVER_InferenceRequestId(TRITONSERVER_InferenceRequest *, const char **id);
Error *TRITONSERVER_InferenceRequestFlags(TRITONSERVER_InferenceRequest *, uint32_t *flags);
Error *TRITONSERVER_InferenceRequestCorrelationId(TRITONSERVER_InferenceRequest *, uint64_t *id);
Error *TRITONSERVER_InferenceRequestCorrelationIdString(TRITONSERVER_InferenceRequest *, const char **id);
Error *TRITONSERVER_InferenceRequestPriority(TRITONSERVER_InferenceRequest *, uint32_t *priority);
Error *TRITONSERVER_InferenceRequestPriorityUInt64(TRITONSERVER_InferenceRequest *, uint64_t *priority);
Error *TRITONSERVER_InferenceRequestSetPriority(TRITONSERVER_InferenceRequest *, uint32_t priority);
Error *TRITONSERVER_InferenceRequestSetPriorityUInt64(TRITONSERVER_InferenceRequest *, uint64_t priority);
Error *TRITONSERVER_InferenceRequestTimeoutMicroseconds(TRITONSERVER_InferenceRequest *, uint64_t *timeout);
Error *TRITONSERVER_InferenceRequestSetDoubleParameter(TRITONSERVER_InferenceRequest *, const char *key, double value);
Error *TRITONSERVER_InferenceRequestIsCancelled(TRITONSERVER_InferenceRequest *, bool *cancelled);
Error *TRITONSERVER_InferenceRequestRemoveInput(TRITONSERVER_InferenceRequest *, const char *name);
Error *TRITONSERVER_InferenceRequestRemoveAllInputs(TRITONSERVER_InferenceRequest *);
Error *TRITONSERVER_InferenceRequestRemoveAllInputData(TRITONSERVER_InferenceRequest *, const char *name);
Error *TRITONSERVER_InferenceRequestRemoveRequestedOutput(TRITONSERVER_InferenceRequest *, const char *name);
Error *TRITONSERVER_InferenceRequestRemoveAllRequestedOutputs(TRITONSERVER_InferenceRequest *);
Error *TRITONSERVER_InferenceRequestCancel(TRITONSERVER_InferenceRequest *);
Error *TRITONSERVER_ResponseAllocatorNew(
    TRITONSERVER_ResponseAllocator **allocator, AllocateOutput, ReleaseOutput, StartOutput);
Error *TRITONSERVER_ResponseAllocatorSetQueryFunction(TRITONSERVER_ResponseAllocator *, QueryOutput);
Error *TRITONSERVER_ResponseAllocatorSetBufferAttributesFunction(
    TRITONSERVER_ResponseAllocator *, BufferAttributesOf);
Error *TRITONSERVER_ResponseAllocatorDelete(TRITONSERVER_ResponseAllocator *);
Error *TRITONSERVER_ServerInferAsync(
    TRITONSERVER_Server *, TRITONSERVER_InferenceRequest *, TRITONSERVER_InferenceTrace *);
Error *TRITONSERVER_ServerModelIsReady(TRITONSERVER_Server *, const char *model, int64_t version, bool *ready);
Error *TRITONSERVER_ServerModelTransactionProperties(
    TRITONSERVER_Server *, const char *model, int64_t version, uint32_t *flags, void **unused);
Error *TRITONSERVER_ServerLoadModel(TRITONSERVER_Server *, const char *model);
Error *TRITONSERVER_ServerLoadModelWithParameters(
    TRITONSERVER_Server *, const char *model, const TRITONSERVER_Parameter **parameters, uint64_t count);
Error *TRITONSERVER_ServerUnloadModel(TRITONSERVER_Server *, const char *model);
Error *TRITONSERVER_ServerUnloadModelAndDependents(TRITONSERVER_Server *, const char *model);
Error *TRITONSERVER_InferenceResponseError(TRITONSERVER_InferenceResponse *);
Error *TRITONSERVER_InferenceResponseModel(TRITONSERVER_InferenceResponse *, const char **model, int64_t *version);
Error *TRITONSERVER_InferenceResponseId(TRITONSERVER_InferenceResponse *, const char **id);
Error *TRITONSERVER_InferenceResponseOutputCount(TRITONSERVER_InferenceResponse *, uint32_t *count);
Error *TRITONSERVER_InferenceResponseOutput(
    TRITONSERVER_InferenceResponse *, uint32_t index, const char **name, int *type, const int64_t **shape,
    uint64_t *dims, const void **base, size_t *bytes, int *kind, int64_t *id, void **user);
Error *TRITONSERVER_InferenceResponseParameterCount(TRITONSERVER_InferenceResponse *, uint32_t *count);
Error *TRITONSERVER_InferenceResponseParameter(
    TRITONSERVER_InferenceResponse *, uint32_t index, const char **key, int *type, const void **value);
Error *TRITONSERVER_InferenceResponseDelete(TRITONSERVER_InferenceResponse *);

#endif
