/* Descriptors: what the host tells about a model or an instance, what a plugin tells about itself. */
#ifndef TRTSERVER_DESCRIBE_H
#define TRTSERVER_DESCRIBE_H

#include "types.h"

#ifdef __cplusplus
extern "C" {
#endif

/* A tensor as the configuration declares it. Part of a trts_model_desc. */
typedef struct trts_tensor_decl {
  trts_str name;
  uint32_t dtype; /* TRTS_DTYPE_… */
  uint32_t rank;
  const int64_t *dims;       /* what the caller sees, without the batch dimension; -1 = variable */
  const int64_t *model_dims; /* what the model sees, where the configuration reshapes; else as dims */
  uint32_t model_rank;
  uint32_t flags; /* TRTS_TENSOR_… */
} trts_tensor_decl;

/* One version of a model. The host's; lives until model_close (in model_complete: during the call).
 * Never changes, so any thread may read it. */
typedef struct trts_model_desc {
  uint64_t size; /* sizeof, as the host knows it */
  trts_scope *scope;
  trts_str name;
  int64_t version;
  trts_str dir;         /* the model's directory, */
  trts_str version_dir; /* its version's, */
  trts_str file;        /* and the file or directory inside that */
  trts_bytes config_pb; /* the effective ModelConfig, serialized */
  trts_str config_json; /* the same with all defaults printed */
  const trts_param *settings; /* server-wide settings of this plugin */
  uint32_t n_settings;
  uint32_t autocomplete;    /* not 0: the plugin may fill in what the configuration leaves out */
  const trts_param *params; /* the model's parameters, all of kind STRING */
  uint32_t n_params;
  int32_t max_batch_size;
  const trts_tensor_decl *inputs;
  const trts_tensor_decl *outputs;
  uint32_t n_inputs;
  uint32_t n_outputs;
  int32_t graph_level;  /* optimization.graph.level; 0 when unset */
  uint32_t n_instances; /* that the host is going to open, over all groups */
  uint32_t threads;     /* that the framework may use for each instance; at least 1 */
  uint32_t pad;
  uint64_t reserved[4];
} trts_model_desc;

/* Kinds of instance, as in the configuration. */
enum { TRTS_KIND_GPU = 1, TRTS_KIND_CPU = 2, TRTS_KIND_MODEL = 3 };

/* A device that an instance uses beside its own. Part of a trts_instance_desc. */
typedef struct trts_secondary_device {
  trts_str kind;
  int64_t id;
} trts_secondary_device;

/* One instance. The host's; lives until instance_close and never changes. */
typedef struct trts_instance_desc {
  uint64_t size;
  trts_scope *scope;
  trts_str name;
  trts_str host_policy_json;
  uint32_t kind;    /* TRTS_KIND_… */
  uint32_t ordinal; /* among the model's instances, from 0 */
  int32_t device;   /* GPU ordinal; -1 on the CPU */
  uint32_t passive;
  uint8_t device_uuid[16];
  const uint32_t *cpus;
  uint32_t n_cpus;
  uint32_t threads; /* that the framework may use for this instance; at least 1 */
  int32_t numa_node;
  uint32_t max_rows; /* largest batch in rows; at least 1 */
  void *cu_context;  /* CUDA driver handles of the host, or null: primary context, */
  void *cu_stream;   /* compute stream, */
  void *cu_copy_in;  /* and two for copies */
  void *cu_copy_out;
  const trts_str *profiles;
  uint32_t n_profiles;
  uint32_t n_secondary;
  const trts_secondary_device *secondary;
  uint64_t reserved[4];
} trts_instance_desc;

/* Bits of trts_about.flags. A host acts on the first and the last; the others tell operators and later hosts. */
enum {
  TRTS_ABOUT_PARALLEL_OPEN = 1,    /* instance_open may run for several instances at once */
  TRTS_ABOUT_ANY_THREAD = 2,       /* an instance does not care which thread executes it; one at a time */
  TRTS_ABOUT_DEVICE_EXCLUSIVE = 4, /* an instance wants its device for itself */
  TRTS_ABOUT_WANTS_GATHER = 8,     /* it gathers every input of a batch into one block */
  TRTS_ABOUT_OWN_STREAM = 16,      /* it uses CUDA streams of its own and none of the host's */
  TRTS_ABOUT_MUST_ISOLATE = 32     /* models run in a process of their own unless the operator says otherwise */
};

/* Instances that a plugin prefers when the configuration names no group. Part of a trts_about. */
typedef struct trts_preferred_group {
  uint32_t kind; /* TRTS_KIND_… */
  uint32_t count;
} trts_preferred_group;

/* What a plugin says of itself. The plugin's: static, or valid until plugin_close when asked with an
 * open plugin; read by any thread. */
typedef struct trts_about {
  uint64_t size;
  trts_str name; /* as `backend:` in a configuration says it */
  trts_str version;
  trts_str runtime;              /* the framework behind it; empty until the library is open */
  const trts_str *platforms;     /* as `platform:` in a configuration says them */
  const trts_str *default_files; /* model file of each platform, same order; empty = none */
  const trts_str *features;
  uint32_t n_platforms;
  uint32_t n_features;
  uint32_t flags;         /* TRTS_ABOUT_… */
  uint32_t max_in_flight; /* executes accepted but unanswered per instance; 1 = ordinary */
  uint32_t input_places;  /* bit sets: 1u << TRTS_PLACE_CPU and so on */
  uint32_t output_places;
  uint32_t stack_kib; /* of an instance's thread; 0 = the host's default of 8 MiB */
  uint32_t align;     /* that inputs need, a power of two up to 64; 0 = that of the element */
  const trts_preferred_group *preferred;
  uint32_t n_preferred;
  uint32_t pad;
  uint64_t reserved[4];
} trts_about;

#ifdef __cplusplus
}
#endif
#endif
