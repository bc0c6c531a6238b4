/* SPDX-License-Identifier: Apache-2.0 */
/* Descriptors: a model and an instance as the host describes them, a backend as it describes itself. */
#ifndef TRTSERVER_DESCRIPTORS_H
#define TRTSERVER_DESCRIPTORS_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A tensor as the model configuration declares it. Part of a trts_model_desc. */
typedef struct trts_tensor_decl {
  trts_str name;  /* as clients and the configuration call it */
  uint32_t dtype; /* TRTS_DTYPE_… */
  uint32_t rank;  /* number of dims */
  const int64_t *dims;       /* shape for clients, without the batch dimension; -1 = variable */
  const int64_t *model_dims; /* shape for the model, where the configuration reshapes; else as dims */
  uint32_t model_rank;       /* number of model_dims */
  uint32_t flags; /* TRTS_TENSOR_… */
} trts_tensor_decl;

/* One version of a model. Owned by the host; valid until model_close (in autocomplete: during the call).
 * Immutable, so any thread may read it. */
typedef struct trts_model_desc {
  uint64_t size;        /* sizeof, as the host was built */
  trts_scope *scope;    /* of the model: owner of its logs and metrics */
  trts_str name;        /* of the model */
  int64_t version;      /* number of the version, which is the name of its directory */
  trts_str dir;         /* the model's directory */
  trts_str version_dir; /* the version's directory */
  trts_str file;        /* model file or directory inside version_dir */
  trts_bytes config_pb; /* the effective ModelConfig, serialized */
  trts_str config_json; /* the same as JSON, with all defaults */
  const trts_param *settings; /* server-wide settings of this backend */
  uint32_t n_settings;
  uint32_t autocomplete;    /* not 0: the backend may add what the configuration omits */
  const trts_param *params; /* the model's parameters, all of kind STRING */
  uint32_t n_params;
  int32_t max_batch_size;          /* rows; 0 = tensors have no batch dimension */
  const trts_tensor_decl *inputs;  /* in the order of the configuration */
  const trts_tensor_decl *outputs; /* likewise */
  uint32_t n_inputs;
  uint32_t n_outputs;
  int32_t graph_level;  /* optimization.graph.level; 0 when unset */
  uint32_t n_instances; /* that the host will open at first, over all instance groups; their number may change later */
  uint32_t threads;     /* that the framework may use for each instance; at least 1 */
  uint32_t pad;
  void *state; /* for model_open: what autocomplete of this version stored in this process, else NULL; until it returns */
  uint64_t reserved[4];
} trts_model_desc;

/* Kinds of instance; numbers of the model configuration. */
enum { TRTS_KIND_GPU = 1, TRTS_KIND_CPU = 2, TRTS_KIND_MODEL = 3 };

/* A further device of an instance. Part of a trts_instance_desc. */
typedef struct trts_secondary_device {
  trts_str kind; /* as in secondary_devices of the configuration, such as KIND_NVDLA */
  int64_t id;    /* number of the device among those of its kind */
} trts_secondary_device;

/* One instance. Owned by the host; valid and immutable until instance_close. */
typedef struct trts_instance_desc {
  uint64_t size;     /* sizeof, as the host was built */
  trts_scope *scope; /* of the instance: owner of its logs and metrics */
  trts_str name;     /* of the instance, for logs */
  trts_str host_policy_json; /* {"NAME":{"cpu-cores":"0-3"}}: the policy of the instance group, by default cpu, gpu_N or
                                model, with its settings, to which the thread is bound */
  uint32_t kind;     /* TRTS_KIND_… */
  uint32_t ordinal;  /* among the model's open instances; that of a closed one is used again */
  int32_t device_id; /* GPU ordinal; -1 on the CPU */
  uint32_t passive;         /* not 0: opened, but not scheduled yet */
  uint8_t device_uuid[16];  /* of the GPU; zeros on the CPU */
  const uint32_t *cpus; /* of the policy; none: any */
  uint32_t n_cpus;
  uint32_t threads; /* that the framework may use for this instance; at least 1 */
  int32_t numa_node; /* of the policy; -1: any */
  uint32_t max_rows; /* largest batch in rows; at least 1 */
  void *cu_context;  /* primary context of the GPU (CUcontext), owned by the host; null on the CPU */
  void *cu_stream;   /* stream for compute (CUstream), likewise */
  void *cu_copy_in;  /* stream for copies to the device, likewise */
  void *cu_copy_out; /* stream for copies from the device, likewise */
  const trts_str *profiles; /* instance_group.profile of the configuration */
  uint32_t n_profiles;
  uint32_t n_secondary;
  const trts_secondary_device *secondary; /* instance_group.secondary_devices of the configuration */
  uint64_t reserved[4];
} trts_instance_desc;

/* Bits of trts_backend_info.flags. The host acts on PARALLEL_OPEN, ANY_THREAD, MUST_ISOLATE,
 * SECONDARY_DEVICES, ACCELERATORS, BATCH_INPUTS, FREE_OUTPUTS and those after it; the others inform operators. */
enum {
  TRTS_BACKEND_PARALLEL_OPEN = 1,    /* instance_open may run for several instances at once */
  TRTS_BACKEND_ANY_THREAD = 2,       /* an instance may execute on any thread, one at a time */
  TRTS_BACKEND_DEVICE_EXCLUSIVE = 4, /* an instance needs its device for itself */
  TRTS_BACKEND_USES_GATHER = 8,      /* it gathers every input of a batch into one block */
  TRTS_BACKEND_OWN_STREAM = 16,      /* it uses CUDA streams of its own and none of the host's */
  TRTS_BACKEND_MUST_ISOLATE = 32,    /* models run in a child process unless the operator says otherwise */
  TRTS_BACKEND_SECONDARY_DEVICES = 64, /* it uses trts_instance_desc.secondary; else they have no effect, with a warning */
  /* it reads optimization.execution_accelerators and refuses accelerators that it does not support; without this
     flag the host refuses all */
  TRTS_BACKEND_ACCELERATORS = 128,
  TRTS_BACKEND_BATCH_INPUTS = 256, /* it reads inputs flagged TRTS_TENSOR_BATCH; else the host refuses batch_input */
  /* outputs of its responses may differ from the configuration: clients get the data type and the shape that it sends.
     Without this flag the host refuses such outputs. The host still checks that the bytes fit the shape, and checks
     states, reshaped outputs and outputs of a whole batch against the configuration. */
  TRTS_BACKEND_FREE_OUTPUTS = 512,
  /* files of its models are data: no model can make the process run, read or write anything else. Without this flag the
     host refuses models that come with a load request where the operator allows no code in them. */
  TRTS_BACKEND_DATA_MODELS = 1024,
  TRTS_BACKEND_PROFILES = 2048,      /* it uses the profiles of an instance (instance_group.profile); else they are refused */
  TRTS_BACKEND_SHAPE_TENSORS = 4096, /* it has shape tensors (is_shape_tensor); else they are refused */
  TRTS_BACKEND_NON_LINEAR_IO = 8192, /* it has tensors with is_non_linear_format_io; else they are refused */
  /* of the fields of a configuration that only some backends use, it uses those that a flag below names, and no others:
     the host warns of the others at load. Without this flag the host knows nothing of them and does not warn. */
  TRTS_BACKEND_LISTS_FIELDS = 16384,
  TRTS_BACKEND_GRAPH_LEVELS = 32768,       /* with LISTS_FIELDS: it uses optimization.graph.level */
  TRTS_BACKEND_CUDA_GRAPHS = 65536,        /* with LISTS_FIELDS: it uses optimization.cuda.graphs and graph_spec */
  TRTS_BACKEND_OPERATION_LIBRARIES = 131072, /* with LISTS_FIELDS: it uses model_operations.op_library_filename */
  /* it completes models with the batch size of the setting `default-max-batch-size`, which was 1 in v1.x: with a start line of
     v1.x the host sets it to 1, unless the operator sets it */
  TRTS_BACKEND_V1_BATCH_SIZE = 262144,
  /* its setting `version` is its own, such as the generation of its framework; without this flag the host takes it: it is
     the version of the plugin that models get */
  TRTS_BACKEND_OWN_VERSION_SETTING = 524288
};

/* Instances that a backend prefers where the configuration names no kind or no count. Part of a
 * trts_backend_info. */
typedef struct trts_preferred_group {
  uint32_t kind;  /* TRTS_KIND_… */
  uint32_t count; /* of instances, on each device of that kind */
} trts_preferred_group;

/* A backend as it describes itself. Owned by the backend: static, or valid until backend_close when it was
 * returned for an open backend. Any thread may read it. */
typedef struct trts_backend_info {
  uint64_t size; /* sizeof, as the backend was built */
  trts_str name; /* as in `backend:` of a model configuration */
  trts_str version; /* of the backend, for logs and the list of backends */
  trts_str runtime;              /* the framework and its version; empty until the backend is open */
  const trts_str *platforms;     /* as in `platform:` of a model configuration */
  const trts_str *default_files; /* model file of each platform, same order; empty = none */
  const trts_extension *extensions;          /* that get_extension of the backend table returns */
  const trts_extension *required_extensions; /* of the host; a host without one refuses to load the backend */
  uint32_t n_platforms;
  uint32_t n_extensions;
  uint32_t n_required_extensions;
  uint32_t flags;               /* TRTS_BACKEND_… */
  uint32_t max_in_flight;       /* batches accepted but unanswered per instance; 1 = ordinary */
  uint32_t input_memory_types;  /* bit set of what it reads: 1u << TRTS_MEMORY_CPU and so on */
  uint32_t output_memory_types; /* bit set of what it writes */
  /* Kinds of instance that it opens: bit set, 1u << TRTS_KIND_GPU and so on; 0 = CPU and MODEL. An open backend
   * may list fewer, if its framework has no others here: KIND_AUTO chooses among those, and model_open refuses a
   * configuration that names one of the others, with the reason. */
  uint32_t instance_kinds;
  uint32_t stack_kib; /* stack of an instance's thread; 0 = the host's default of 8 MiB */
  uint32_t align;     /* required of inputs, a power of two up to 64; 0 = that of the element type */
  uint32_t n_preferred;
  uint32_t gpu_max_in_flight; /* as max_in_flight, for instances on GPUs; 0 = the same */
  const trts_preferred_group *preferred; /* in the order of preference */
  uint32_t decoupled_max_in_flight; /* as max_in_flight, for instances of decoupled models; 0 = the same */
  uint32_t pad;
  uint64_t reserved[3];
} trts_backend_info;

#ifdef __cplusplus
}
#endif
#endif
