// Runs a compiled model of torch with one FP32 input and one FP32 output as often as given through
// torch's C functions, with one thread; writes the output to OUTPUT and prints the nanoseconds of CPU
// time of one call. STUB stands for the library that compiled models are linked with besides torch's
// for the CPU.

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { MAX_RANK = 8 };

static void* open_library(const char* path, int flags) {
  void* library = dlopen(path, flags);
  if (!library) fprintf(stderr, "%s\n", dlerror()), exit(1);
  return library;
}

static void* symbol(void* library, const char* name) {
  void* found = dlsym(library, name);
  if (!found) fprintf(stderr, "%s\n", dlerror()), exit(1);
  return found;
}

static void check(int status, const char* what) {
  if (status) fprintf(stderr, "%s failed: %d\n", what, status), exit(1);
}

static void* read_file(const char* path) {
  FILE* file = fopen(path, "rb");
  if (!file) perror(path), exit(1);
  fseek(file, 0, SEEK_END);
  size_t size = ftell(file);
  rewind(file);
  void* bytes = aligned_alloc(64, (size + 63) / 64 * 64);
  if (fread(bytes, 1, size, file) != size) exit(1);
  fclose(file);
  return bytes;
}

int main(int argc, char** argv) {
  if (argc != 9) return fprintf(stderr, "usage: pytorch SHAPE STUB COMPILED LIBRARY MODEL INPUT OUTPUT ROUNDS\n"), 2;
  open_library(argv[2], RTLD_NOW | RTLD_GLOBAL);
  char file[4096];
  // A library finds the others of its package from the directory of the file.
  if (!realpath(argv[4], file)) return perror(argv[4]), 1;
  void* torch = open_library(file, RTLD_NOW);
  void* model = open_library(argv[3], RTLD_NOW);
  ((void (*)(int))symbol(torch, "omp_set_num_threads"))(1);

  int64_t sizes[MAX_RANK], strides[MAX_RANK], rank = 0, stride = 1;
  for (char* part = strtok(argv[1], ","); part && rank < MAX_RANK; part = strtok(NULL, ",")) sizes[rank++] = atol(part);
  for (int at = rank - 1; at >= 0; at--) strides[at] = stride, stride *= sizes[at];

  void* container;
  int (*create)(void**, size_t, const char*, const char*) = symbol(model, "AOTInductorModelContainerCreateWithDevice");
  check(create(&container, 1, "cpu", NULL), "create");
  int (*run)(void*, void**, size_t, void**, size_t, void*, void*) = symbol(model, "AOTInductorModelContainerRun");
  int (*wrap)(void*, int64_t, const int64_t*, const int64_t*, int64_t, int32_t, int32_t, int32_t, void**) = symbol(torch, "aoti_torch_create_tensor_from_blob");
  int (*release)(void*) = symbol(torch, "aoti_torch_delete_tensor_object");
  int32_t type = ((int32_t(*)(void))symbol(torch, "aoti_torch_dtype_float32"))();
  int32_t cpu = ((int32_t(*)(void))symbol(torch, "aoti_torch_device_type_cpu"))();
  void *data = read_file(argv[6]), *input, *output = NULL;
  struct timespec begin, end;
  long rounds = atol(argv[8]);
  for (long i = -5; i < rounds; i++) {
    if (i == 0) clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    if (output) release(output);
    check(wrap(data, rank, sizes, strides, 0, type, cpu, 0, &input), "tensor");
    // The run takes the input.
    check(run(container, &input, 1, &output, 1, NULL, NULL), "run");
  }
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
  int64_t count;
  void* result;
  check(((int (*)(void*, int64_t*))symbol(torch, "aoti_torch_get_numel"))(output, &count), "size");
  check(((int (*)(void*, void**))symbol(torch, "aoti_torch_get_data_ptr"))(output, &result), "data");
  FILE* to = fopen(argv[7], "wb");
  if (!to || fwrite(result, sizeof(float), count, to) != (size_t)count) return 1;
  fclose(to);
  printf("%.1f\n", ((end.tv_sec - begin.tv_sec) * 1e9 + (end.tv_nsec - begin.tv_nsec)) / rounds);
  // The library's threads may outlive main.
  fflush(stdout);
  _exit(0);
}
