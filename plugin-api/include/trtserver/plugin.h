/* The plugin's table, and the one symbol that swaps it for the host's. */
#ifndef TRTSERVER_PLUGIN_H
#define TRTSERVER_PLUGIN_H

#include "describe.h"
#include "host.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Entry points. Those that return trts_error * give null on success, or an error of the host's
 * error_new, which the host frees. The host holds no lock while it calls one. No exception may leave
 * an entry. Entries marked "optional" may be null. The server does not call model_probe, drain,
 * instance_ready, trim and the batcher yet: nothing may depend on them. */
typedef struct trts_plugin_table {
  uint64_t size; /* sizeof, as the plugin knows it */
  uint32_t abi_major;
  uint32_t abi_minor;

  /* With null: facts of the library. With an open plugin: may narrow them. Never null. Any thread. */
  const trts_about *(*describe)(trts_plugin *plugin);
  /* Once per configured backend name, on a loader thread. dir: where the plugin's file lies. */
  trts_error *(*plugin_open)(trts_scope *scope, trts_str name, trts_str dir,
                             const trts_param *settings, uint32_t n_settings, trts_plugin **out);
  /* After the last model is closed; join your threads here. */
  void (*plugin_close)(trts_plugin *plugin);

  /* Optional. Confidence, 0 to 1000, that dir holds a model of this plugin. Loader thread. */
  uint32_t (*model_probe)(trts_plugin *plugin, trts_str dir);
  /* Optional. Fills in what the configuration leaves out, with config_patch. Loader thread, may be slow. */
  trts_error *(*model_complete)(trts_plugin *plugin, const trts_model_desc *desc);
  /* Once per version, on a loader thread. desc lives until model_close. */
  trts_error *(*model_open)(trts_plugin *plugin, const trts_model_desc *desc, trts_model **out);
  /* When no instance is left. */
  void (*model_close)(trts_model *model);

  /* On the thread that will execute; one at a time per plugin unless TRTS_ABOUT_PARALLEL_OPEN. desc
   * lives until instance_close. */
  trts_error *(*instance_open)(trts_model *model, const trts_instance_desc *desc,
                               trts_instance **out);
  /* The work, on the instance's thread or, with TRTS_ABOUT_ANY_THREAD, on any other, one at a time. An error = nothing was accepted, the host still owns every
   * call. Success = each call's reply must be ended and each request released exactly once, now or
   * later, on any thread. What is neither ended nor retained when execute returns, the host ends with
   * an error and releases. */
  trts_error *(*execute)(trts_instance *instance, trts_batch *batch);
  /* Optional. Nobody waits any more for a call that the instance has: for those that wait for something else than the
     call's cancelled word, which was set before. From a thread of the host's, also during execute; must not block. At
     most once for a call. The instance stays open meanwhile. The call had not ended when the host looked and may end
     meanwhile, so `reply` is for comparing. A call that was cancelled before execute got it is not told of. */
  void (*cancel)(trts_instance *instance, trts_reply *reply);
  /* Optional. Finish or fail everything accepted until the given time. */
  void (*drain)(trts_instance *instance, uint64_t until_ns);
  /* Optional. Not 0 = healthy. Any thread, quick. */
  uint32_t (*instance_ready)(trts_instance *instance);
  /* Optional. Give caches back, of one model or (null) of all; returns the bytes freed. Any thread. */
  uint64_t (*trim)(trts_plugin *plugin, trts_model *model, uint64_t bytes);
  /* On the instance's thread. */
  void (*instance_close)(trts_instance *instance);

  /* Optional, all five or none: custom batching on a scheduler thread. Microseconds, and no host call
   * but log. batcher_offer: not 0 = take the call into the batch. */
  trts_error *(*batcher_open)(trts_model *model, trts_batcher **out);
  trts_error *(*batcher_begin)(trts_batcher *batcher);
  uint32_t (*batcher_offer)(trts_batcher *batcher, const trts_call *call);
  void (*batcher_end)(trts_batcher *batcher);
  void (*batcher_close)(trts_batcher *batcher);
} trts_plugin_table;

/* Type of the entry symbol. */
typedef const trts_plugin_table *(*trts_plugin_main_fn)(const trts_host *host);

#if defined(_WIN32)
#define TRTS_EXPORT __declspec(dllexport)
#elif defined(__GNUC__)
#define TRTS_EXPORT __attribute__((visibility("default")))
#else
#define TRTS_EXPORT
#endif

/* The one symbol that a plugin defines. Takes the host's table (valid for ever: keep it), gives the
 * plugin's (static). A plugin that cannot run on this host returns its table all the same: the host
 * compares the numbers and says so in words. Null = refused for another reason. */
TRTS_EXPORT const trts_plugin_table *trts_plugin_main(const trts_host *host);

#ifdef __cplusplus
}
#endif
#endif
