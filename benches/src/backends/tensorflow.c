// Runs the GraphDef FILE, INPUT0 to OUTPUT0, with 16 FP32 values as often as given through
// TensorFlow's C API, and prints the nanoseconds of CPU time of one run: as a program would that
// serves one request after another on its own thread.

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef struct { const void* data; size_t length; void (*free)(void*, size_t); } Buffer;
typedef struct { void* operation; int index; } Output;

static void keep(void* data, size_t length, void* argument) { (void)data, (void)length, (void)argument; }

static void* library;

static void* symbol(const char* name) {
  void* found = dlsym(library, name);
  if (!found) fprintf(stderr, "%s\n", dlerror()), exit(1);
  return found;
}

int main(int argc, char** argv) {
  if (argc != 4) return fprintf(stderr, "usage: tensorflow LIBRARY FILE ROUNDS\n"), 2;
  if (!(library = dlopen(argv[1], RTLD_NOW))) return fprintf(stderr, "%s\n", dlerror()), 1;
  void* (*new_status)(void) = symbol("TF_NewStatus");
  int (*get_code)(void*) = symbol("TF_GetCode");
  const char* (*message)(void*) = symbol("TF_Message");
  void* (*new_graph)(void) = symbol("TF_NewGraph");
  void* (*new_import)(void) = symbol("TF_NewImportGraphDefOptions");
  void (*import)(void*, Buffer*, void*, void*) = symbol("TF_GraphImportGraphDef");
  void* (*operation)(void*, const char*) = symbol("TF_GraphOperationByName");
  void* (*new_options)(void) = symbol("TF_NewSessionOptions");
  void (*set_config)(void*, const void*, size_t, void*) = symbol("TF_SetConfig");
  void* (*new_session)(void*, void*, void*) = symbol("TF_NewSession");
  void* (*new_tensor)(int, int64_t*, int, void*, size_t, void (*)(void*, size_t, void*), void*) =
      symbol("TF_NewTensor");
  void (*delete_tensor)(void*) = symbol("TF_DeleteTensor");
  void* (*data)(void*) = symbol("TF_TensorData");
  void (*run)(void*, Buffer*, Output*, void**, int, Output*, void**, int, void*, int, void*, void*) =
      symbol("TF_SessionRun");

  static char file[1 << 16];
  FILE* opened = fopen(argv[2], "rb");
  Buffer bytes = {file, opened ? fread(file, 1, sizeof file, opened) : 0, NULL};
  void *status = new_status(), *graph = new_graph(), *options = new_options();
  import(graph, &bytes, new_import(), status);
  if (get_code(status)) return fprintf(stderr, "%s\n", message(status)), 1;
  // One thread in each pool; operations run on the calling thread.
  set_config(options, "\x10\x01\x28\x01", 4, status);
  void* session = new_session(graph, options, status);
  Buffer in_caller = {"\x18\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", 11, NULL};
  Output input = {operation(graph, "INPUT0"), 0}, output = {operation(graph, "OUTPUT0"), 0};

  _Alignas(64) static float values[16];
  int64_t dims = 16;
  struct timespec begin, end;
  long rounds = atol(argv[3]);
  for (long i = -1000; i < rounds; i++) {
    if (i == 0) clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    values[3] = i;
    void *fed = new_tensor(1, &dims, 1, values, sizeof values, keep, NULL), *fetched = NULL;
    run(session, &in_caller, &input, &fed, 1, &output, &fetched, 1, NULL, 0, NULL, status);
    if (get_code(status)) return fprintf(stderr, "%s\n", message(status)), 1;
    if (((float*)data(fetched))[3] != values[3]) return fprintf(stderr, "a wrong result\n"), 1;
    delete_tensor(fed);
    delete_tensor(fetched);
  }
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
  printf("%.1f\n", ((end.tv_sec - begin.tv_sec) * 1e9 + (end.tv_nsec - begin.tv_nsec)) / rounds);
  return 0;
}
