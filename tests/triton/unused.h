/* Names that this server exports and refuses: no known backend calls them, but they must exist, since backends are opened with all of
 * their imports resolved. They are called with null arguments here, so their own types do not matter. */

#ifndef TRITON_UNUSED_H
#define TRITON_UNUSED_H

/* A name each for `X`. */
#define TRITON_UNUSED(X) \
  X(TRITONCACHE_CacheEntryAddBuffer) \
  X(TRITONCACHE_CacheEntryBufferCount) \
  X(TRITONCACHE_CacheEntryGetBuffer) \
  X(TRITONCACHE_CacheEntrySetBuffer) \
  X(TRITONCACHE_Copy) \
  X(TRITONREPOAGENT_ModelConfig) \
  X(TRITONREPOAGENT_ModelParameter) \
  X(TRITONREPOAGENT_ModelParameterCount) \
  X(TRITONREPOAGENT_ModelRepositoryLocation) \
  X(TRITONREPOAGENT_ModelRepositoryLocationAcquire) \
  X(TRITONREPOAGENT_ModelRepositoryLocationRelease) \
  X(TRITONREPOAGENT_ModelRepositoryUpdate) \
  X(TRITONREPOAGENT_ModelSetState) \
  X(TRITONREPOAGENT_ModelState) \
  X(TRITONREPOAGENT_SetState) \
  X(TRITONREPOAGENT_State) \
  X(TRITONSERVER_InferenceRequestAddRawInput) \
  X(TRITONSERVER_InferenceResponseOutputClassificationLabel) \
  X(TRITONSERVER_InferenceTraceId) \
  X(TRITONSERVER_InferenceTraceModelName) \
  X(TRITONSERVER_InferenceTraceModelVersion) \
  X(TRITONSERVER_InferenceTraceNew) \
  X(TRITONSERVER_InferenceTraceParentId) \
  X(TRITONSERVER_InferenceTraceRequestId) \
  X(TRITONSERVER_InferenceTraceSetContext) \
  X(TRITONSERVER_InferenceTraceTensorNew) \
  X(TRITONSERVER_MetricsDelete) \
  X(TRITONSERVER_MetricsFormatted) \
  X(TRITONSERVER_ServerDelete) \
  X(TRITONSERVER_ServerIsLive) \
  X(TRITONSERVER_ServerIsReady) \
  X(TRITONSERVER_ServerMetadata) \
  X(TRITONSERVER_ServerMetrics) \
  X(TRITONSERVER_ServerModelBatchProperties) \
  X(TRITONSERVER_ServerModelConfig) \
  X(TRITONSERVER_ServerModelIndex) \
  X(TRITONSERVER_ServerModelMetadata) \
  X(TRITONSERVER_ServerModelStatistics) \
  X(TRITONSERVER_ServerNew) \
  X(TRITONSERVER_ServerOptionsAddRateLimiterResource) \
  X(TRITONSERVER_ServerOptionsDelete) \
  X(TRITONSERVER_ServerOptionsNew) \
  X(TRITONSERVER_ServerOptionsSetBackendConfig) \
  X(TRITONSERVER_ServerOptionsSetBackendDirectory) \
  X(TRITONSERVER_ServerOptionsSetBufferManagerThreadCount) \
  X(TRITONSERVER_ServerOptionsSetCacheConfig) \
  X(TRITONSERVER_ServerOptionsSetCacheDirectory) \
  X(TRITONSERVER_ServerOptionsSetCpuMetrics) \
  X(TRITONSERVER_ServerOptionsSetCudaMemoryPoolByteSize) \
  X(TRITONSERVER_ServerOptionsSetCudaVirtualAddressSize) \
  X(TRITONSERVER_ServerOptionsSetEnablePeerAccess) \
  X(TRITONSERVER_ServerOptionsSetExitOnError) \
  X(TRITONSERVER_ServerOptionsSetExitTimeout) \
  X(TRITONSERVER_ServerOptionsSetGpuMetrics) \
  X(TRITONSERVER_ServerOptionsSetHostPolicy) \
  X(TRITONSERVER_ServerOptionsSetLogError) \
  X(TRITONSERVER_ServerOptionsSetLogFile) \
  X(TRITONSERVER_ServerOptionsSetLogFormat) \
  X(TRITONSERVER_ServerOptionsSetLogInfo) \
  X(TRITONSERVER_ServerOptionsSetLogVerbose) \
  X(TRITONSERVER_ServerOptionsSetLogWarn) \
  X(TRITONSERVER_ServerOptionsSetMetrics) \
  X(TRITONSERVER_ServerOptionsSetMetricsConfig) \
  X(TRITONSERVER_ServerOptionsSetMetricsInterval) \
  X(TRITONSERVER_ServerOptionsSetMinSupportedComputeCapability) \
  X(TRITONSERVER_ServerOptionsSetModelConfigName) \
  X(TRITONSERVER_ServerOptionsSetModelControlMode) \
  X(TRITONSERVER_ServerOptionsSetModelLoadDeviceLimit) \
  X(TRITONSERVER_ServerOptionsSetModelLoadRetryCount) \
  X(TRITONSERVER_ServerOptionsSetModelLoadThreadCount) \
  X(TRITONSERVER_ServerOptionsSetModelNamespacing) \
  X(TRITONSERVER_ServerOptionsSetModelRepositoryPath) \
  X(TRITONSERVER_ServerOptionsSetPinnedMemoryPoolByteSize) \
  X(TRITONSERVER_ServerOptionsSetRateLimiterMode) \
  X(TRITONSERVER_ServerOptionsSetRepoAgentDirectory) \
  X(TRITONSERVER_ServerOptionsSetResponseCacheByteSize) \
  X(TRITONSERVER_ServerOptionsSetServerId) \
  X(TRITONSERVER_ServerOptionsSetStartupModel) \
  X(TRITONSERVER_ServerOptionsSetStrictModelConfig) \
  X(TRITONSERVER_ServerOptionsSetStrictReadiness) \
  X(TRITONSERVER_ServerPollModelRepository) \
  X(TRITONSERVER_ServerRegisterModelRepository) \
  X(TRITONSERVER_ServerSetExitTimeout) \
  X(TRITONSERVER_ServerStop) \
  X(TRITONSERVER_ServerUnregisterModelRepository)

#endif
