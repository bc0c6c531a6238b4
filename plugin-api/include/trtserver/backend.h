/* SPDX-License-Identifier: Apache-2.0 */
/* The backend table, and the entry symbol that exchanges it for the host table. */
#ifndef TRTSERVER_BACKEND_H
#define TRTSERVER_BACKEND_H

#include "descriptors.h"
#include "host.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Entries of a backend. Those that return trts_error * return null on success, or an error created with
 * the host's error_new, which the host frees. The host holds no lock while it calls an entry. No exception
 * may leave an entry. All entries but get_extension are required. */
typedef struct trts_backend_table {
  uint64_t size; /* sizeof, as the backend was built */
  uint32_t abi_major; /* TRTS_ABI_MAJOR, as the backend was built */
  uint32_t abi_minor; /* TRTS_ABI_MINOR, as the backend was built */

  /* Describes the library (null) or an open backend, which may narrow what the library says. Never returns
   * null. Any thread. */
  const trts_backend_info *(*backend_info)(trts_backend *backend);
  /* Opens the backend, with the first model that uses it, on a loader thread. `dir` holds the plugin file.
   * The scope is owned by the host and valid until backend_close. */
  trts_error *(*backend_open)(trts_scope *scope, trts_str name, trts_str dir,
                              const trts_param *settings, uint32_t n_settings, trts_backend **out);
  /* Closes the backend after its last model; it must join its threads here. */
  void (*backend_close)(trts_backend *backend);

  /* Opens one version of a model, on a loader thread. `desc` is valid until model_close. */
  trts_error *(*model_open)(trts_backend *backend, const trts_model_desc *desc, trts_model **out);
  /* Closes a model that has no instance left. */
  void (*model_close)(trts_model *model);

  /* Opens an instance on its own thread; one at a time per backend unless TRTS_BACKEND_PARALLEL_OPEN.
   * `desc` is valid until instance_close. */
  trts_error *(*instance_open)(trts_model *model, const trts_instance_desc *desc,
                               trts_instance **out);
  /* Closes an instance, on its own thread. */
  void (*instance_close)(trts_instance *instance);

  /* Executes a batch on the instance's thread or, with TRTS_BACKEND_ANY_THREAD, on any thread; never twice
   * at once for an instance. An error means that nothing was accepted: the host still owns every request.
   * Success means that the backend finishes each request and releases its handle exactly once, now or
   * later, on any thread. What is neither finished nor detached when execute returns, the host fails and
   * releases. */
  trts_error *(*execute)(trts_instance *instance, trts_batch *batch);

  /* Returns an extension table of at least this version, or null when the backend has no such extension or
   * only an older version. The table is owned by the backend and static. Called when the library is
   * loaded and when models are opened. May be null when the backend offers none; trts_backend_info lists
   * what it offers. */
  const void *(*get_extension)(trts_str name, uint32_t version);
} trts_backend_table;

/* Type of the entry symbol. */
typedef const trts_backend_table *(*trts_backend_main_fn)(const trts_host_table *host);

#if defined(_WIN32)
/* Before the definition of trts_backend_main: exports it from the library. */
#define TRTS_EXPORT __declspec(dllexport)
#elif defined(__GNUC__)
#define TRTS_EXPORT __attribute__((visibility("default")))
#else
#define TRTS_EXPORT
#endif

/* The entry symbol, the one symbol that a plugin exports. Takes the host table, valid for the life of the
 * process, and returns the backend table, which must be static. A backend that cannot run on this host
 * returns its table all the same: the host compares the version numbers and reports both. Null = the
 * backend refuses the host for another reason. */
TRTS_EXPORT const trts_backend_table *trts_backend_main(const trts_host_table *host);

#ifdef __cplusplus
}
#endif
#endif
