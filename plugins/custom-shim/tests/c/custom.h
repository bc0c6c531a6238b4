/* The functions and structures of custom.h, written for these tests: -DGEN=1 (A), 2 (B), 3 (C), 6 (version 2 of v1.6),
 * 8 (version 2 of v1.8). */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#if GEN == 1
typedef struct {
  uint32_t batch_size, output_cnt;
  const char** required_output_names;
  void *input_context, *output_context;
  int error_code;
} CustomPayload;
#else
typedef struct {
  uint32_t batch_size, input_cnt;
  const char** input_names;
  const size_t* input_shape_dim_cnts;
  const int64_t** input_shape_dims;
  uint32_t output_cnt;
  const char** required_output_names;
  void *input_context, *output_context;
  int error_code;
} CustomPayload;
#endif

typedef struct {
  const char *instance_name, *config;
  size_t config_size;
  int gpu_device_id;
  size_t parameter_cnt;
  const char** parameters;
} CustomInitializeData;

#if GEN == 1
typedef bool (*GetNextInput)(void*, const char*, const void**, uint64_t*);
typedef bool (*GetOutput)(void*, const char*, uint64_t, void**);
#elif GEN <= 3
typedef bool (*GetNextInput)(void*, const char*, const void**, uint64_t*);
typedef bool (*GetOutput)(void*, const char*, size_t, int64_t*, uint64_t, void**);
#elif GEN == 6
typedef bool (*GetNextInput)(void*, const char*, const void**, uint64_t*, int*);
typedef bool (*GetOutput)(void*, const char*, size_t, int64_t*, uint64_t, void**, int*);
#else
typedef bool (*GetNextInput)(void*, const char*, const void**, uint64_t*, int*, int64_t*);
typedef bool (*GetOutput)(void*, const char*, size_t, int64_t*, uint64_t, void**, int*, int64_t*);
#endif

/* One call syntax for all generations; `wrong_memory` is set when memory is reported to be anywhere but on the CPU. */
static int wrong_memory;

static bool next(GetNextInput f, const CustomPayload* p, const char* name, const void** block, uint64_t* n) {
#if GEN <= 3
  return f(p->input_context, name, block, n);
#else
  int memory = 1; /* GPU preferred, CPU expected */
#if GEN == 6
  bool ok = f(p->input_context, name, block, n, &memory);
#else
  int64_t id = 5;
  bool ok = f(p->input_context, name, block, n, &memory, &id);
#endif
  wrong_memory |= ok && memory != 0;
  return ok;
#endif
}

static bool output(GetOutput f, const CustomPayload* p, const char* name, size_t rank, int64_t* shape, uint64_t n,
                   void** block) {
#if GEN == 1
  (void)rank, (void)shape;
  return f(p->output_context, name, n, block);
#elif GEN <= 3
  return f(p->output_context, name, rank, shape, n, block);
#else
  int memory = 1;
#if GEN == 6
  bool ok = f(p->output_context, name, rank, shape, n, block, &memory);
#else
  int64_t id = 5;
  bool ok = f(p->output_context, name, rank, shape, n, block, &memory, &id);
#endif
  wrong_memory |= ok && memory != 0;
  return ok;
#endif
}

#if GEN >= 6
#define EXECUTE CustomExecuteV2
uint32_t CustomVersion(void) { return 2; }
#else
#define EXECUTE CustomExecute
#endif

/* initialise(config, size (0 = unknown), data or null, gpu, context) in all generations */
#if GEN == 1
#define INITIALIZE(f)                                                          \
  int CustomInitialize(const char* config, int gpu, void** context) {          \
    return f(config, 0, 0, gpu, context);                                      \
  }
#elif GEN == 2
#define INITIALIZE(f)                                                                  \
  int CustomInitialize(const char* config, size_t n, int gpu, void** context) {        \
    return f(config, n, 0, gpu, context);                                              \
  }
#else
#define INITIALIZE(f)                                                                  \
  int CustomInitialize(const CustomInitializeData* data, void** context) {             \
    return f(data->config, data->config_size, data, data->gpu_device_id, context);     \
  }
#endif
