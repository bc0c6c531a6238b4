// Runs a model with one FP32 input and one FP32 output as often as given through OpenVINO's C
// interface, with one thread; writes the output to OUTPUT and prints the nanoseconds of CPU time of
// one call. The library is opened as the plugin opens it.

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct {
  int64_t rank;
  int64_t* dims;
} shape_t;

enum { F32 = 4, MAX_RANK = 8 };

static void* library;

static void* symbol(const char* name) {
  void* found = dlsym(library, name);
  if (!found) fprintf(stderr, "%s\n", dlerror()), exit(1);
  return found;
}

static void check(int status, const char* what) {
  if (status) fprintf(stderr, "%s failed: %d\n", what, status), exit(1);
}

static void* read_file(const char* path, size_t* size) {
  FILE* file = fopen(path, "rb");
  if (!file) perror(path), exit(1);
  fseek(file, 0, SEEK_END);
  *size = ftell(file);
  rewind(file);
  void* bytes = aligned_alloc(64, (*size + 63) / 64 * 64);
  if (fread(bytes, 1, *size, file) != *size) exit(1);
  fclose(file);
  return bytes;
}

int main(int argc, char** argv) {
  if (argc != 7) return fprintf(stderr, "usage: openvino SHAPE LIBRARY MODEL INPUT OUTPUT ROUNDS\n"), 2;
  char file[4096];
  // A library finds the others of its package from the directory of the file.
  if (!realpath(argv[2], file) || !(library = dlopen(file, RTLD_NOW))) return fprintf(stderr, "%s\n", dlerror()), 1;
  int64_t dims[MAX_RANK];
  shape_t shape = {0, dims};
  for (char* part = strtok(argv[1], ","); part && shape.rank < MAX_RANK; part = strtok(NULL, ",")) dims[shape.rank++] = atol(part);

  void *core, *compiled, *request, *input, *output = NULL;
  check(((int (*)(void**))symbol("ov_core_create"))(&core), "core");
  int (*compile)(const void*, const char*, const char*, size_t, void**, ...) = symbol("ov_core_compile_model_from_file");
  check(compile(core, argv[3], "CPU", 6, &compiled, "INFERENCE_NUM_THREADS", "1", "NUM_STREAMS", "1", "INFERENCE_PRECISION_HINT", "f32"), "compile");
  check(((int (*)(void*, void**))symbol("ov_compiled_model_create_infer_request"))(compiled, &request), "request");
  size_t size, bytes;
  void* data = read_file(argv[4], &size);
  check(((int (*)(int, shape_t, void*, void**))symbol("ov_tensor_create_from_host_ptr"))(F32, shape, data, &input), "tensor");
  int (*set_input)(void*, size_t, void*) = symbol("ov_infer_request_set_input_tensor_by_index");
  int (*infer)(void*) = symbol("ov_infer_request_infer");
  int (*get_output)(void*, size_t, void**) = symbol("ov_infer_request_get_output_tensor_by_index");
  void (*release)(void*) = symbol("ov_tensor_free");
  struct timespec begin, end;
  long rounds = atol(argv[6]);
  for (long i = -5; i < rounds; i++) {
    if (i == 0) clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    if (output) release(output);
    check(set_input(request, 0, input), "input");
    check(infer(request), "infer");
    check(get_output(request, 0, &output), "output");
  }
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
  void* result;
  check(((int (*)(void*, size_t*))symbol("ov_tensor_get_byte_size"))(output, &bytes), "size");
  check(((int (*)(void*, void**))symbol("ov_tensor_data"))(output, &result), "data");
  FILE* to = fopen(argv[5], "wb");
  if (!to || fwrite(result, 1, bytes, to) != bytes) return 1;
  fclose(to);
  printf("%.1f\n", ((end.tv_sec - begin.tv_sec) * 1e9 + (end.tv_nsec - begin.tv_nsec)) / rounds);
  // The library's threads may outlive main.
  fflush(stdout);
  _exit(0);
}
