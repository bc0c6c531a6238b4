/* One library source for every generation: -DGENERATION_A, _B11, _B, _C, _V2A or _V2B chooses. A library defines the four
   functions declared here; this file exports them under the symbols of the interface.

   -DEXPORT_VERSION=N exports a CustomVersion that returns N. -DWITHOUT_INITIALIZE, _FINALIZE, _ERROR_STRING and
   _EXECUTE leave a symbol out. */
#ifndef GENERATION_H
#define GENERATION_H

#define _GNU_SOURCE
#include "config.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#if defined(GENERATION_A)
#include "custom_a.h"
#define GENERATION "A"
#elif defined(GENERATION_B11)
#include "custom_b.h"
#define GENERATION "B11"
#elif defined(GENERATION_B)
#include "custom_b.h"
#define GENERATION "B"
#elif defined(GENERATION_C)
#include "custom_c.h"
#define GENERATION "C"
#elif defined(GENERATION_V2A)
#define CUSTOM_ARITY_TYPE
#include "custom_v2.h"
#define GENERATION "V2A"
#define IS_V2
#elif defined(GENERATION_V2B)
#include "custom_v2.h"
#define GENERATION "V2B"
#define IS_V2
#else
#error "define a generation"
#endif
#if defined(GENERATION_C) || defined(IS_V2)
#define IS_V1_0
#endif
#if defined(GENERATION_A) || defined(GENERATION_B11)
#define WITHOUT_HINTS /* the size of an input is a result only */
#endif

typedef struct {
  Bytes config;
  int gpu;
  const char* instance_name; /* NULL before generation C, as are the parameters */
  size_t parameter_count;
  const char** parameters;
} Start;

static int library_start(const Start* start, void** context);
static int library_run(void* context, uint32_t count, CustomPayload* payloads, CustomGetNextInput get_next_input,
                       CustomGetOutput get_output);
static const char* library_explain(void* context, int error);
static int library_finish(void* context);

/* Appends a line to the file named by CUSTOM_TRACE, for tests that check the order of calls. */
__attribute__((format(printf, 1, 2), unused)) static void trace(const char* format, ...) {
  const char* path = getenv("CUSTOM_TRACE");
  if (path == NULL) return;
  char line[512];
  va_list arguments;
  va_start(arguments, format);
  int length = vsnprintf(line, sizeof line - 1, format, arguments);
  va_end(arguments);
  if (length > (int)sizeof line - 2) length = (int)sizeof line - 2;
  line[length++] = '\n';
  int file = open(path, O_WRONLY | O_APPEND | O_CREAT, 0600);
  if (file < 0) return;
  if (write(file, line, (size_t)length) != length) abort();
  close(file);
}

__attribute__((unused)) static long thread_id(void) { return syscall(SYS_gettid); }

/* One block of an input. On entry `*size` is the hint, where the generation has hints. */
__attribute__((unused)) static bool next_block(CustomGetNextInput get, void* context, const char* name,
                                               const void** content, uint64_t* size) {
#if defined(GENERATION_V2A)
  CustomMemoryType type = CUSTOM_MEMORY_CPU;
  return get(context, name, content, size, &type) && type == CUSTOM_MEMORY_CPU;
#elif defined(GENERATION_V2B)
  CustomMemoryType type = CUSTOM_MEMORY_CPU;
  int64_t id = 0;
  return get(context, name, content, size, &type, &id) && type == CUSTOM_MEMORY_CPU;
#else
#if defined(WITHOUT_HINTS)
  *size = 0; /* libraries leave it uninitialised */
#endif
  return get(context, name, content, size);
#endif
}

/* Requests memory for an output; generation A has no shapes. */
__attribute__((unused)) static bool ask_output(CustomGetOutput get, void* context, const char* name, size_t rank,
                                               int64_t* shape, uint64_t size, void** content) {
#if defined(GENERATION_A)
  (void)rank, (void)shape;
  return get(context, name, size, content);
#elif defined(GENERATION_V2A)
  CustomMemoryType type = CUSTOM_MEMORY_CPU;
  return get(context, name, rank, shape, size, content, &type) && type == CUSTOM_MEMORY_CPU;
#elif defined(GENERATION_V2B)
  CustomMemoryType type = CUSTOM_MEMORY_CPU;
  int64_t id = 0;
  return get(context, name, rank, shape, size, content, &type, &id) && type == CUSTOM_MEMORY_CPU;
#else
  return get(context, name, rank, shape, size, content);
#endif
}

/* All blocks of an input, in memory that the caller frees. `hint` is the size hint of each call. NULL when the input
   cannot be read or exceeds `limit` bytes. */
__attribute__((unused)) static uint8_t* whole_input(CustomGetNextInput get, void* context, const char* name,
                                                    uint64_t hint, uint64_t limit, uint64_t* size, unsigned* blocks) {
  uint8_t* bytes = malloc(1);
  *size = 0;
  if (blocks != NULL) *blocks = 0;
  while (bytes != NULL) {
    const void* content = NULL;
    uint64_t block = hint;
    if (!next_block(get, context, name, &content, &block) || (content != NULL && *size + block > limit)) {
      free(bytes);
      return NULL;
    }
    if (content == NULL) return bytes;
    uint8_t* more = realloc(bytes, *size + block + 1);
    if (more == NULL) {
      free(bytes);
      return NULL;
    }
    bytes = more;
    memcpy(bytes + *size, content, block);
    *size += block;
    if (blocks != NULL) ++*blocks;
  }
  return NULL;
}

__attribute__((unused)) static bool is_required(const CustomPayload* payload, const char* name) {
  for (uint32_t i = 0; i < payload->output_cnt; i++) {
    if (strcmp(payload->required_output_names[i], name) == 0) return true;
  }
  return false;
}

#if defined(GENERATION_A) && !defined(WITHOUT_INITIALIZE)
int CustomInitialize(const char* config, int gpu, void** context) {
  /* Generation A passes no size: the configuration is read up to the first zero byte. */
  Start start = {{(const uint8_t*)config, strlen(config)}, gpu, NULL, 0, NULL};
  return library_start(&start, context);
}
#elif (defined(GENERATION_B11) || defined(GENERATION_B)) && !defined(WITHOUT_INITIALIZE)
int CustomInitialize(const char* config, size_t size, int gpu, void** context) {
  Start start = {{(const uint8_t*)config, size}, gpu, NULL, 0, NULL};
  return library_start(&start, context);
}
#elif defined(IS_V1_0) && !defined(WITHOUT_INITIALIZE)
int CustomInitialize(const CustomInitializeData* data, void** context) {
  Start start = {{(const uint8_t*)data->serialized_model_config, data->serialized_model_config_size},
                 data->gpu_device_id,
                 data->instance_name,
                 data->server_parameter_cnt,
                 data->server_parameters};
  return library_start(&start, context);
}
#endif

#if !defined(WITHOUT_FINALIZE)
int CustomFinalize(void* context) { return library_finish(context); }
#endif

#if !defined(WITHOUT_ERROR_STRING)
const char* CustomErrorString(void* context, int error) { return library_explain(context, error); }
#endif

#if !defined(WITHOUT_EXECUTE)
#if defined(IS_V2)
int CustomExecuteV2(void* context, uint32_t count, CustomPayload* payloads, CustomGetNextInput get_next_input,
                    CustomGetOutput get_output) {
  return library_run(context, count, payloads, get_next_input, get_output);
}
#else
int CustomExecute(void* context, uint32_t count, CustomPayload* payloads, CustomGetNextInput get_next_input,
                  CustomGetOutput get_output) {
  return library_run(context, count, payloads, get_next_input, get_output);
}
#endif
#endif

#if defined(IS_V2) && !defined(EXPORT_VERSION)
#define EXPORT_VERSION 2
#endif
#if defined(EXPORT_VERSION)
uint32_t CustomVersion(void);
uint32_t CustomVersion(void) {
  trace("version");
  return EXPORT_VERSION;
}
#endif

#if defined(WITHOUT_INITIALIZE) || defined(WITHOUT_FINALIZE) || defined(WITHOUT_ERROR_STRING) || \
    defined(WITHOUT_EXECUTE)
/* Prevents warnings about unused functions when a symbol is left out. */
void* const library_functions[] = {(void*)library_start, (void*)library_run, (void*)library_explain,
                                   (void*)library_finish};
#endif

#endif
