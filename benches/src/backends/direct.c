// Calls a library of generation B with 64 bytes as often as given and prints the nanoseconds of one
// call.

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "custom.h"

static float from[16], to[16];
static int pulled;

static bool next_input(void* context, const char* name, const void** content, uint64_t* bytes) {
  (void)context, (void)name;
  *content = pulled++ ? NULL : from;
  *bytes = sizeof from;
  return true;
}

static bool get_output(
    void* context, const char* name, size_t dims, int64_t* shape, uint64_t bytes, void** content) {
  (void)context, (void)name, (void)dims, (void)shape, (void)bytes;
  *content = to;
  return true;
}

int main(int argc, char** argv) {
  if (argc != 3) return fprintf(stderr, "usage: direct LIBRARY ROUNDS\n"), 2;
  void* library = dlopen(argv[1], RTLD_NOW);
  int (*execute)(void*, uint32_t, Payload*, GetNextInput, GetOutput);
  if (!library || !(*(void**)&execute = dlsym(library, "CustomExecute"))) {
    return fprintf(stderr, "%s\n", dlerror()), 1;
  }
  const char *input = "INPUT0", *output = "OUTPUT0";
  size_t rank = 1;
  int64_t dim = 16;
  const int64_t* shape = &dim;
  long rounds = atol(argv[2]);
  struct timespec begin, end;
  clock_gettime(CLOCK_MONOTONIC, &begin);
  for (long i = 0; i < rounds; ++i) {
    Payload p = {1, 1, &input, &rank, &shape, 1, &output, NULL, NULL, 0};
    pulled = 0;
    from[0] = (float)i;
    if (execute(NULL, 1, &p, next_input, get_output) || p.error_code || to[0] != from[0]) {
      return fprintf(stderr, "wrong output\n"), 1;
    }
  }
  clock_gettime(CLOCK_MONOTONIC, &end);
  double ns = (end.tv_sec - begin.tv_sec) * 1e9 + (end.tv_nsec - begin.tv_nsec);
  printf("%.1f\n", ns / rounds);
  return 0;
}
