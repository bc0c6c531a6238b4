/* Checks of backend, model and instance: what the host says of them, and the pointers that it keeps. */

#include "checks.h"

#include <stdio.h>
#include <stdlib.h>

static int BACKEND_STATE, INSTANCE_STATE;

static Error *memory(TRITONBACKEND_MemoryManager *manager)
{
  void *first = NULL, *second = NULL;
  MUST(TRITONBACKEND_MemoryManagerAllocate(manager, &first, MEMORY_CPU, 0, 1 << 20));
  MUST(TRITONBACKEND_MemoryManagerAllocate(manager, &second, MEMORY_CPU, 0, 64));
  EXPECT(TRITONBACKEND_MemoryManagerAllocate, first != NULL && second != NULL && first != second);
  memset(first, 0x11, 1 << 20);
  memset(second, 0x22, 64);
  EXPECT(TRITONBACKEND_MemoryManagerAllocate, ((char *)first)[(1 << 20) - 1] == 0x11);
  MUST(TRITONBACKEND_MemoryManagerFree(manager, first, MEMORY_CPU, 0));
  MUST(TRITONBACKEND_MemoryManagerFree(manager, second, MEMORY_CPU, 0));
  return NULL;
}

Error *check_backend(TRITONBACKEND_Backend *backend)
{
  uint32_t major = 0, minor = 0;
  const char *text = NULL;
  TRITONSERVER_Message *config = NULL;
  TRITONBACKEND_MemoryManager *manager = NULL, *same = NULL;
  int kind = 99, policy = 99;
  void *state = UNSET;
  MUST(TRITONBACKEND_ApiVersion(&major, &minor));
  EXPECT(TRITONBACKEND_ApiVersion, major == 1 && minor == 19);
  MUST(TRITONBACKEND_BackendName(backend, &text));
  EXPECT_TEXT(TRITONBACKEND_BackendName, text, "contract");

  /* The host's message; its JSON has strings only. */
  MUST(TRITONBACKEND_BackendConfig(backend, &config));
  TRY(has_json("TRITONBACKEND_BackendConfig", config, "{\"cmdline\":{"));
  TRY(has_json("TRITONBACKEND_BackendConfig", config, "\"auto-complete-config\":\"true\""));
  TRY(has_json("TRITONBACKEND_BackendConfig", config, "\"backend-directory\":\"/"));
  TRY(has_json("TRITONBACKEND_BackendConfig", config, "\"min-compute-capability\":\""));
  TRY(has_json("TRITONBACKEND_BackendConfig", config, "\"default-max-batch-size\":\"4\""));
  TRY(has_json("TRITONBACKEND_BackendConfig", config, "\"colour\":\"blue\""));

  MUST(TRITONBACKEND_BackendArtifacts(backend, &kind, &text));
  EXPECT(TRITONBACKEND_BackendArtifacts, kind == 0 && text != NULL && text[0] == '/');
  size_t length = strlen(text);
  EXPECT(TRITONBACKEND_BackendArtifacts, length > 9 && strcmp(text + length - 9, "/contract") == 0);

  MUST(TRITONBACKEND_BackendMemoryManager(backend, &manager));
  MUST(TRITONBACKEND_BackendMemoryManager(backend, &same));
  EXPECT(TRITONBACKEND_BackendMemoryManager, manager != NULL && manager == same);
  TRY(memory(manager));

  MUST(TRITONBACKEND_BackendState(backend, &state));
  EXPECT(TRITONBACKEND_BackendState, state == NULL);
  MUST(TRITONBACKEND_BackendSetState(backend, &BACKEND_STATE));
  MUST(TRITONBACKEND_BackendState(backend, &state));
  EXPECT(TRITONBACKEND_BackendState, state == &BACKEND_STATE);

  MUST(TRITONBACKEND_BackendExecutionPolicy(backend, &policy));
  EXPECT(TRITONBACKEND_BackendExecutionPolicy, policy == 0);
  MUST(TRITONBACKEND_BackendSetExecutionPolicy(backend, 1));
  MUST(TRITONBACKEND_BackendExecutionPolicy(backend, &policy));
  EXPECT(TRITONBACKEND_BackendExecutionPolicy, policy == 1);
  MUST(TRITONBACKEND_BackendSetExecutionPolicy(backend, 0));
  return NULL;
}

Error *check_attribute(TRITONBACKEND_BackendAttribute *attribute)
{
  static const uint64_t DEVICES[] = {0};
  MUST(TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(attribute, KIND_CPU, 2, NULL, 0));
  MUST(TRITONBACKEND_BackendAttributeAddPreferredInstanceGroup(attribute, KIND_GPU, 0, DEVICES, 1));
  MUST(TRITONBACKEND_BackendAttributeSetParallelModelInstanceLoading(attribute, true));
  return NULL;
}

static Error *memory_usage(TRITONSERVER_BufferAttributes **usage)
{
  MUST(TRITONSERVER_BufferAttributesNew(usage));
  MUST(TRITONSERVER_BufferAttributesSetMemoryType(*usage, MEMORY_CPU));
  MUST(TRITONSERVER_BufferAttributesSetMemoryTypeId(*usage, 0));
  MUST(TRITONSERVER_BufferAttributesSetByteSize(*usage, 12345));
  return NULL;
}

/* Defaults are printed, numbers of 64 bits are numbers, and platform and backend both have a value. */
static Error *config(TRITONBACKEND_Model *handle, const Model *model)
{
  TRITONSERVER_Message *message = NULL;
  char name[96];
  MUST(TRITONBACKEND_ModelConfig(handle, 1, &message));
  snprintf(name, sizeof name, "{\"name\":\"%s\"", model->name);
  TRY(has_json("TRITONBACKEND_ModelConfig", message, name));
  TRY(has_json("TRITONBACKEND_ModelConfig", message, "\"backend\":\"contract\""));
  TRY(has_json("TRITONBACKEND_ModelConfig", message, "\"version_policy\":{\"latest\":{\"num_versions\":1}}"));
  TRY(has_json("TRITONBACKEND_ModelConfig", message, "\"is_shape_tensor\":false,\"allow_ragged_batch\":false,\"optional\":"));
  TRY(has_json("TRITONBACKEND_ModelConfig", message, "\"default_model_filename\":"));
  TRY(has_json("TRITONBACKEND_ModelConfig", message, "\"data_type\":\"TYPE_INT32\",\"format\":\"FORMAT_NONE\",\"dims\":[4]"));
  MUST(TRITONSERVER_MessageDelete(message));
  REFUSES(ANY, TRITONBACKEND_ModelConfig(handle, 2, &message));
  return NULL;
}

Error *check_model(TRITONBACKEND_Model *handle)
{
  const char *text = NULL;
  uint64_t version = 0;
  int kind = 99;
  bool complete = false;
  void *state = UNSET;
  TRITONBACKEND_Backend *backend = NULL;
  TRITONSERVER_BufferAttributes *usage = NULL;
  Model *model = calloc(1, sizeof *model);
  MUST(TRITONBACKEND_ModelState(handle, &state));
  EXPECT(TRITONBACKEND_ModelState, state == NULL);
  MUST(TRITONBACKEND_ModelSetState(handle, model));
  MUST(TRITONBACKEND_ModelState(handle, &state));
  EXPECT(TRITONBACKEND_ModelState, state == model);

  MUST(TRITONBACKEND_ModelName(handle, &text));
  EXPECT(TRITONBACKEND_ModelName, text != NULL && *text != '\0');
  snprintf(model->name, sizeof model->name, "%s", text);
  MUST(TRITONBACKEND_ModelVersion(handle, &version));
  EXPECT(TRITONBACKEND_ModelVersion, version == 1);
  /* Without the version. */
  MUST(TRITONBACKEND_ModelRepository(handle, &kind, &text));
  EXPECT(TRITONBACKEND_ModelRepository, kind == 0 && text != NULL && text[0] == '/');
  const char *slash = strrchr(text, '/');
  EXPECT_TEXT(TRITONBACKEND_ModelRepository, slash + 1, model->name);
  MUST(TRITONBACKEND_ModelServer(handle, &model->server));
  EXPECT(TRITONBACKEND_ModelServer, model->server != NULL);
  MUST(TRITONBACKEND_ModelBackend(handle, &backend));
  MUST(TRITONBACKEND_BackendState(backend, &state));
  EXPECT(TRITONBACKEND_ModelBackend, state == &BACKEND_STATE);
  MUST(TRITONBACKEND_BackendMemoryManager(backend, &model->memory));
  MUST(TRITONBACKEND_ModelAutoCompleteConfig(handle, &complete));
  model->completing = complete;
  TRY(memory_usage(&usage));
  MUST(TRITONBACKEND_ModelReportMemoryUsage(handle, &usage, 1));
  MUST(TRITONSERVER_BufferAttributesDelete(usage));
  TRY(parameter_of(handle, "check", model->check, sizeof model->check));
  /* A host may initialise a model twice: to complete its configuration, and then with the completed one. */
  if (!complete || strcmp(model->check, "complete") != 0) TRY(config(handle, model));
  return NULL;
}

/* Completes an empty configuration, then reads back what the host made of it. */
Error *check_complete(TRITONBACKEND_Model *handle)
{
  static const char COMPLETED[] =
      "{\"name\":\"another\",\"backend\":\"another\",\"max_batch_size\":6,"
      "\"input\":[{\"name\":\"INPUT0\",\"data_type\":\"TYPE_INT32\",\"dims\":[4]}],"
      "\"output\":[{\"name\":\"OUTPUT0\",\"data_type\":\"TYPE_INT32\",\"dims\":[4]}],"
      "\"dynamic_batching\":{}}";
  static const char BROKEN[] = "{\"max_batch_size\":\"many\"}";
  TRITONSERVER_Message *message = NULL;
  MUST(TRITONSERVER_MessageNewFromSerializedJson(&message, BROKEN, strlen(BROKEN)));
  REFUSES(ANY, TRITONBACKEND_ModelSetConfig(handle, 1, message));
  MUST(TRITONSERVER_MessageDelete(message));
  MUST(TRITONSERVER_MessageNewFromSerializedJson(&message, COMPLETED, strlen(COMPLETED)));
  REFUSES(ANY, TRITONBACKEND_ModelSetConfig(handle, 2, message));
  MUST(TRITONBACKEND_ModelSetConfig(handle, 1, message));
  /* The message is still the backend's. */
  TRY(has_json("TRITONBACKEND_ModelSetConfig", message, "\"another\""));
  MUST(TRITONSERVER_MessageDelete(message));
  MUST(TRITONBACKEND_ModelConfig(handle, 1, &message));
  TRY(has_json("TRITONBACKEND_ModelConfig", message, "\"max_batch_size\":6"));
  TRY(has_json("TRITONBACKEND_ModelConfig", message, "\"backend\":\"contract\""));
  TRY(has_json("TRITONBACKEND_ModelConfig", message, "\"dynamic_batching\":{"));
  TRY(has_json("TRITONBACKEND_ModelConfig", message, "\"optional\":false"));
  MUST(TRITONSERVER_MessageDelete(message));
  return NULL;
}

/* Memory of a server that has a GPU; here a test double, whose memory can be read like any other. */
static Error *device_memory(TRITONBACKEND_MemoryManager *manager, int kind)
{
  void *first = NULL, *second = NULL;
  MUST(TRITONBACKEND_MemoryManagerAllocate(manager, &first, kind, 0, 1 << 20));
  MUST(TRITONBACKEND_MemoryManagerAllocate(manager, &second, kind, 0, 64));
  EXPECT(TRITONBACKEND_MemoryManagerAllocate, first != NULL && second != NULL && first != second);
  if (kind == MEMORY_CPU_PINNED) memset(first, 0x11, 1 << 20);
  MISUSE(TRITONBACKEND_MemoryManagerFree(manager, first, MEMORY_CPU, 0));
  MUST(TRITONBACKEND_MemoryManagerFree(manager, first, kind, 0));
  MISUSE(TRITONBACKEND_MemoryManagerFree(manager, first, kind, 0));
  MUST(TRITONBACKEND_MemoryManagerFree(manager, second, kind, 0));
  return NULL;
}

static Error *gpu_memory(TRITONBACKEND_MemoryManager *manager)
{
  void *none = NULL;
  TRY(device_memory(manager, MEMORY_GPU));
  TRY(device_memory(manager, MEMORY_CPU_PINNED));
  REFUSES(ANY, TRITONBACKEND_MemoryManagerAllocate(manager, &none, MEMORY_GPU, 99, 64));
  REFUSES(ANY, TRITONBACKEND_MemoryManagerAllocate(manager, &none, MEMORY_GPU, 0, 1ull << 60));
  return NULL;
}

Error *check_instance(TRITONBACKEND_ModelInstance *instance)
{
  const char *text = NULL;
  int kind = 99;
  int32_t device = 99;
  int64_t id = 99;
  uint32_t count = 99;
  bool passive = true;
  void *state = UNSET;
  TRITONBACKEND_Model *handle = NULL;
  TRITONSERVER_Message *policy = NULL;
  TRITONSERVER_BufferAttributes *usage = NULL;
  MUST(TRITONBACKEND_ModelInstanceModel(instance, &handle));
  MUST(TRITONBACKEND_ModelState(handle, &state));
  EXPECT(TRITONBACKEND_ModelInstanceModel, state != NULL && state != UNSET);
  const Model *model = state;

  MUST(TRITONBACKEND_ModelInstanceState(instance, &state));
  EXPECT(TRITONBACKEND_ModelInstanceState, state == NULL);
  MUST(TRITONBACKEND_ModelInstanceSetState(instance, &INSTANCE_STATE));
  MUST(TRITONBACKEND_ModelInstanceState(instance, &state));
  EXPECT(TRITONBACKEND_ModelInstanceState, state == &INSTANCE_STATE);

  bool gpu = strcmp(model->check, "gpu") == 0;
  if (gpu) TRY(gpu_memory(model->memory));
  MUST(TRITONBACKEND_ModelInstanceName(instance, &text));
  EXPECT(TRITONBACKEND_ModelInstanceName, text != NULL && strstr(text, model->name) == text);
  MUST(TRITONBACKEND_ModelInstanceKind(instance, &kind));
  EXPECT(TRITONBACKEND_ModelInstanceKind, kind == (gpu ? KIND_GPU : KIND_CPU));
  MUST(TRITONBACKEND_ModelInstanceDeviceId(instance, &device));
  EXPECT(TRITONBACKEND_ModelInstanceDeviceId, device == 0);
  MUST(TRITONBACKEND_ModelInstanceIsPassive(instance, &passive));
  EXPECT(TRITONBACKEND_ModelInstanceIsPassive, !passive);
  MUST(TRITONBACKEND_ModelInstanceHostPolicy(instance, &policy));
  /* The model with profiles names a policy. */
  bool profiles = strcmp(model->check, "profiles") == 0;
  TRY(has_json("TRITONBACKEND_ModelInstanceHostPolicy", policy, profiles ? "{\"mine\":{" : gpu ? "{\"gpu_0\":{" : "{\"cpu\":{"));

  MUST(TRITONBACKEND_ModelInstanceProfileCount(instance, &count));
  EXPECT(TRITONBACKEND_ModelInstanceProfileCount, count == (profiles ? 2u : 0u));
  if (profiles) {
    MUST(TRITONBACKEND_ModelInstanceProfileName(instance, 1, &text));
    EXPECT_TEXT(TRITONBACKEND_ModelInstanceProfileName, text, "7");
  }
  REFUSES(ANY, TRITONBACKEND_ModelInstanceProfileName(instance, count, &text));
  MUST(TRITONBACKEND_ModelInstanceSecondaryDeviceCount(instance, &count));
  EXPECT(TRITONBACKEND_ModelInstanceSecondaryDeviceCount, count == (profiles ? 1u : 0u));
  if (profiles) {
    MUST(TRITONBACKEND_ModelInstanceSecondaryDeviceProperties(instance, 0, &text, &id));
    EXPECT(TRITONBACKEND_ModelInstanceSecondaryDeviceProperties, strcmp(text, "KIND_NVDLA") == 0 && id == 1);
  }
  REFUSES(ANY, TRITONBACKEND_ModelInstanceSecondaryDeviceProperties(instance, count, &text, &id));
  TRY(memory_usage(&usage));
  MUST(TRITONBACKEND_ModelInstanceReportMemoryUsage(instance, &usage, 1));
  MUST(TRITONSERVER_BufferAttributesDelete(usage));
  return NULL;
}
