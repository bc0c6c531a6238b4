// Predicts the rows of INPUT, 64 FP32 values each, as often as given with a model of ten classes
// through the C interface of LightGBM or XGBoost, with one thread; writes the scores to OUTPUT and
// prints the nanoseconds of CPU time of one call. One row goes through the interface that LightGBM
// has for it.

#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { FEATURES = 64, CLASSES = 10 };

static void* library;
static float* rows;
static float* scores;
static int count;

static void* symbol(const char* name) {
  void* found = dlsym(library, name);
  if (!found) fprintf(stderr, "%s\n", dlerror()), exit(1);
  return found;
}

static void check(int result, const char* what) {
  if (result) fprintf(stderr, "%s failed\n", what), exit(1);
}

static char* read_file(const char* path, size_t* size) {
  FILE* file = fopen(path, "rb");
  if (!file) perror(path), exit(1);
  fseek(file, 0, SEEK_END);
  *size = ftell(file);
  rewind(file);
  char* bytes = calloc(*size + 1, 1);
  if (fread(bytes, 1, *size, file) != *size) exit(1);
  fclose(file);
  return bytes;
}

static void *booster, *fast;
static double* values;
static int (*lgbm_predict)(void*, const void*, int, int32_t, int32_t, int, int, int, int, const char*, int64_t*, double*);
static int (*lgbm_fast)(void*, const void*, int64_t*, double*);

static void lightgbm_open(const char* path) {
  int iterations;
  check(((int (*)(const char*, int*, void**))symbol("LGBM_BoosterCreateFromModelfile"))(path, &iterations, &booster), "load");
  lgbm_predict = symbol("LGBM_BoosterPredictForMat");
  lgbm_fast = symbol("LGBM_BoosterPredictForMatSingleRowFast");
  int (*init)(void*, int, int, int, int, int32_t, const char*, void**) = symbol("LGBM_BoosterPredictForMatSingleRowFastInit");
  check(init(booster, 0, 0, -1, 0, FEATURES, "num_threads=1", &fast), "init");
  values = malloc(sizeof(double) * count * CLASSES);
}

static void lightgbm_call(void) {
  int64_t length;
  if (count == 1)
    check(lgbm_fast(fast, rows, &length, values), "predict");
  else
    check(lgbm_predict(booster, rows, 0, count, FEATURES, 1, 0, 0, -1, "num_threads=1", &length, values), "predict");
  for (int i = 0; i < count * CLASSES; i++) scores[i] = values[i];
}

static int (*xgb_predict)(void*, const char*, const char*, void*, const uint64_t**, uint64_t*, const float**);

static void xgboost_open(const char* path) {
  size_t size;
  char* bytes = read_file(path, &size);
  check(((int (*)(void*, uint64_t, void**))symbol("XGBoosterCreate"))(NULL, 0, &booster), "create");
  check(((int (*)(void*, const void*, uint64_t))symbol("XGBoosterLoadModelFromBuffer"))(booster, bytes, size), "load");
  check(((int (*)(void*, const char*, const char*))symbol("XGBoosterSetParam"))(booster, "nthread", "1"), "nthread");
  xgb_predict = symbol("XGBoosterPredictFromDense");
}

static void xgboost_call(void) {
  static const char* config =
      "{\"type\":0,\"training\":false,\"iteration_begin\":0,\"iteration_end\":0,\"strict_shape\":true,"
      "\"missing\":NaN,\"cache_id\":0}";
  char array[200];
  snprintf(array, sizeof array, "{\"data\":[%llu,true],\"shape\":[%d,%d],\"typestr\":\"<f4\",\"version\":3}",
           (unsigned long long)(uintptr_t)rows, count, FEATURES);
  const uint64_t* shape;
  uint64_t rank;
  const float* result;
  check(xgb_predict(booster, array, config, NULL, &shape, &rank, &result), "predict");
  memcpy(scores, result, sizeof(float) * count * CLASSES);
}

int main(int argc, char** argv) {
  if (argc != 7) return fprintf(stderr, "usage: trees FRAMEWORK LIBRARY MODEL INPUT OUTPUT ROUNDS\n"), 2;
  char file[4096];
  // A library finds the others of its package from the directory of the file.
  if (!realpath(argv[2], file) || !(library = dlopen(file, RTLD_NOW))) return fprintf(stderr, "%s\n", dlerror()), 1;
  size_t size;
  rows = (float*)read_file(argv[4], &size);
  count = size / sizeof(float) / FEATURES;
  scores = malloc(sizeof(float) * count * CLASSES);
  int is_lightgbm = !strcmp(argv[1], "lightgbm");
  (is_lightgbm ? lightgbm_open : xgboost_open)(argv[3]);
  void (*call)(void) = is_lightgbm ? lightgbm_call : xgboost_call;
  struct timespec begin, end;
  long rounds = atol(argv[6]);
  for (long i = -5; i < rounds; i++) {
    if (i == 0) clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &begin);
    call();
  }
  clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &end);
  FILE* output = fopen(argv[5], "wb");
  if (!output || fwrite(scores, sizeof(float), count * CLASSES, output) != (size_t)count * CLASSES) return 1;
  fclose(output);
  printf("%.1f\n", ((end.tv_sec - begin.tv_sec) * 1e9 + (end.tv_nsec - begin.tv_nsec)) / rounds);
  return 0;
}
