/* Calls of the C interface against a server: client HTTP_URL GRPC_URL PICTURE. */
#include <poll.h>
#include <pthread.h>
#include <string.h>
#include <time.h>

#include "check_calls.h"

/* The call fails with this kind and a message that contains the text. */
#define FAILS(call, kind, text) fails(call, kind, text, __LINE__)

static void fails(trtc_error *error, int32_t kind, const char *text, int line) {
  trtc_error_info info;
  trtc_error_get(error, &info);
  if (error == NULL || info.kind != kind || strstr(info.message, text) == NULL) {
    fprintf(stderr, "line %d: kind %d, expected %d; message '%s', expected '%s'\n", line, info.kind, kind,
            info.message == NULL ? "" : info.message, text);
    exit(1);
  }
  trtc_error_free(error);
  CHECK(strcmp(trtc_error_message(error), "") == 0);
  trtc_error_free(error);
}

static trtc_settings settings(const char *url, int32_t protocol) {
  trtc_settings settings;
  memset(&settings, 0, sizeof(settings));
  settings.struct_size = sizeof(settings);
  settings.url = url;
  settings.protocol = protocol;
  return settings;
}

/* Outcomes of callbacks. */
struct outcomes {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  int results, errors, ends;
  uint64_t last;
  int32_t kind, sum;
};

static void outcomes_init(struct outcomes *all) {
  memset(all, 0, sizeof(*all));
  pthread_mutex_init(&all->lock, NULL);
  pthread_cond_init(&all->changed, NULL);
}

static void record(struct outcomes *all, uint64_t id, trtc_error *error, bool result, int32_t sum) {
  pthread_mutex_lock(&all->lock);
  all->last = id;
  if (error != NULL) {
    trtc_error_info info;
    trtc_error_get(error, &info);
    all->kind = info.kind;
    all->errors++;
    trtc_error_free(error);
  } else if (result) {
    all->sum = sum;
    all->results++;
  } else {
    all->ends++;
  }
  pthread_cond_broadcast(&all->changed);
  pthread_mutex_unlock(&all->lock);
}

static void v1_done(void *user, uint64_t id, trtc_error *error, trtc_v1_result *result) {
  int32_t sum = 0;
  if (result != NULL) {
    const trtc_v1_result_info *info;
    OK(trtc_v1_result_get(result, &info));
    memcpy(&sum, info->outputs[0].data, sizeof(sum));
    trtc_v1_result_free(result);
  }
  record(user, id, error, result != NULL, sum);
}

static void v2_done(void *user, uint64_t id, trtc_error *error, trtc_v2_result *result) {
  int32_t sum = 0;
  if (result != NULL) {
    const trtc_v2_result_info *info;
    OK(trtc_v2_result_get(result, &info));
    memcpy(&sum, info->outputs[0].data, sizeof(sum));
    trtc_v2_result_free(result);
  }
  record(user, id, error, result != NULL, sum);
}

static void wait_for(struct outcomes *all, int *count, int expected) {
  pthread_mutex_lock(&all->lock);
  while (*count < expected) pthread_cond_wait(&all->changed, &all->lock);
  pthread_mutex_unlock(&all->lock);
}

static void v1_server(const trtc_settings *to) {
  trtc_v1_client *client;
  OK(trtc_v1_client_new(to, &client));
  bool live = false, ready = false;
  OK(trtc_v1_live(client, 0, &live));
  OK(trtc_v1_ready(client, 5000000, &ready));
  CHECK(live && ready);
  trtc_buffer status = {0}, index = {0}, regions = {0};
  OK(trtc_v1_status(client, "addsub_int32", 0, &status));
  CHECK(status.size > 0 && trtc_v1_client_last_request_id(client) > 0);
  OK(trtc_v1_repository_index(client, TRTC_NO_DEADLINE, &index));
  CHECK(index.size > 0);
  OK(trtc_v1_memory_status(client, 0, &regions));
  FAILS(trtc_v1_status(client, "absent", 0, &status), TRTC_KIND_SERVER, "no status available for unknown model 'absent'");
  FAILS(trtc_v1_register_system_memory(client, "r", "/trtserver_absent", 0, 64, 0), TRTC_KIND_SERVER,
        "Unable to open shared memory region: '/trtserver_absent'");
  OK(trtc_v1_unregister_memory(client, NULL, 0));
  FAILS(trtc_v1_profile(client, true, 0), TRTC_KIND_SERVER, "Profile API not enabled");
  OK(trtc_v1_unload_model(client, "echo", 0));
  OK(trtc_v1_load_model(client, "echo", 0));
  FAILS(trtc_v1_live(client, 0, NULL), TRTC_KIND_ARGUMENT, "is NULL");
  trtc_buffer_free(&status);
  trtc_buffer_free(&index);
  trtc_buffer_free(&regions);
  trtc_buffer_free(&regions);
  trtc_v1_client_free(client);
  FAILS(trtc_v1_live(client, 0, &live), TRTC_KIND_ARGUMENT, "the v1 client was released");
  FAILS(trtc_v1_live(NULL, 0, &live), TRTC_KIND_ARGUMENT, "the handle of the v1 client is NULL");
  trtc_v1_client_free(client);
}

/* A request of a batch of two, whose second output is given as classes. */
static void prepared_requests(trtc_v1_context *context, const trtc_v1_request *request, trtc_v1_output *classes) {
  /* With classes the outputs are in a result, tensors are in the reply. */
  int32_t block[2][2][16];
  for (int entry = 0; entry < 2; entry++)
    for (int i = 0; i < 16; i++) {
      block[0][entry][i] = 100 * entry + i;
      block[1][entry][i] = 1;
    }
  uint64_t reply[64];
  const trtc_v1_reply *head = (const trtc_v1_reply *)reply;
  const trtc_v1_result_info *info;
  trtc_v1_prepared *prepared;
  OK(trtc_v1_prepare(context, request, &prepared));
  OK(trtc_v1_prepared_infer(prepared, block, sizeof(block), reply, sizeof(reply)));
  CHECK(head->size == 0 && head->model_version == 1 && head->request_id > 0);
  OK(trtc_v1_result_get(head->result, &info));
  CHECK(info->outputs[1].entries[1].classes[0].value == 116.0f);
  trtc_v1_result_free(head->result);
  trtc_v1_prepared_free(prepared);
  classes->class_count = 0;
  OK(trtc_v1_prepare(context, request, &prepared));
  OK(trtc_v1_prepared_infer(prepared, block, sizeof(block), reply, sizeof(reply)));
  const int64_t *description = (const int64_t *)(head + 1);
  CHECK(head->result == NULL && head->description_size == 64 && head->size == sizeof(*head) + 64 + 256);
  for (int i = 0; i < 2; i++, description += 4)
    CHECK(description[0] == TRTC_TYPE_INT32 && description[1] == 1 && description[2] == 16 && description[3] == 128);
  const int32_t *tensors = (const int32_t *)description;
  for (int i = 0; i < 16; i++) CHECK(tensors[16 + i] == 100 + i - 1 && tensors[48 + i] == 100 + i + 1);
  /* The reply is too small for the tensors. */
  OK(trtc_v1_prepared_infer(prepared, block, sizeof(block), reply, 100));
  CHECK(head->size == 0 && head->result != NULL);
  trtc_v1_result_free(head->result);
  FAILS(trtc_v1_prepared_infer(prepared, block, 8, reply, sizeof(reply)), TRTC_KIND_ARGUMENT,
        "the inputs of a prepared request for model 'addsub_int32' have 8 bytes, expected 256");
  FAILS(trtc_v1_prepared_infer(prepared, block, sizeof(block), reply, 8), TRTC_KIND_ARGUMENT, "expected at least 40");
  FAILS(trtc_v1_prepared_infer(prepared, block, sizeof(block), NULL, 100), TRTC_KIND_ARGUMENT, "expected at least 40");
  FAILS(trtc_v1_prepared_infer(prepared, NULL, sizeof(block), reply, sizeof(reply)), TRTC_KIND_ARGUMENT, "data is NULL");
  FAILS(trtc_v1_prepare(context, NULL, &prepared), TRTC_KIND_ARGUMENT, "request is NULL");
  trtc_v1_prepared_free(prepared);
  FAILS(trtc_v1_prepared_infer(prepared, block, sizeof(block), reply, sizeof(reply)), TRTC_KIND_ARGUMENT, "released");
  classes->class_count = 3;
}

/* Takes completions into 1 KiB until there were `expected`; adds up their ids, and counts them by where their outputs are. */
static void take_v1(trtc_v1_queue *queue, size_t capacity, int expected, uint64_t *ids, int *in_place, int *errors) {
  uint64_t space[128];
  *ids = *in_place = *errors = 0;
  for (int taken = 0; taken < expected;) {
    bool open = false;
    size_t count;
    OK(trtc_v1_queue_wait(queue, &open));
    CHECK(open);
    OK(trtc_v1_queue_take(queue, space, capacity, &count));
    const char *at = (const char *)space;
    for (size_t i = 0; i < count; i++) {
      const trtc_v1_completion *one = (const trtc_v1_completion *)at;
      int32_t *sum = one->user;
      *ids += one->id;
      if (one->error != NULL) {
        *errors += 1;
        CHECK(one->reply.size == 0 && one->reply.result == NULL);
      } else if (one->reply.size > 0) {
        *in_place += 1;
        CHECK(one->reply.description_size == 64 && one->reply.size == sizeof(one->reply) + 64 + 256);
        memcpy(sum, (const char *)(one + 1) + 64, sizeof(*sum));
      } else {
        const trtc_v1_result_info *info;
        OK(trtc_v1_result_get(one->reply.result, &info));
        memcpy(sum, info->outputs[0].data, sizeof(*sum));
      }
      trtc_error_free(one->error);
      trtc_v1_result_free(one->reply.result);
      at += one->size;
    }
    taken += (int)count;
  }
}

static void *wait_for_end(void *queue) {
  bool open = true;
  OK(trtc_v1_queue_wait(queue, &open));
  CHECK(!open);
  return NULL;
}

/* A request of a batch of two tensors; with `prepared`, also in the prepared form. */
static void v1_queued(const trtc_settings *to, bool streaming) {
  trtc_v1_context *context;
  OK(trtc_v1_context_new(to, "addsub_int32", -1, 0, streaming, 0, &context));
  int32_t block[2][2][16];
  for (int i = 0; i < 64; i++) ((int32_t *)block)[i] = i < 32 ? 100 : 1;
  trtc_v1_output outputs[] = {{.name = "OUTPUT0"}, {.name = "OUTPUT1"}};
  trtc_v1_options options = {.struct_size = sizeof(options), .batch_size = 2, .outputs = outputs, .output_count = 2};
  const void *data[2][2] = {{block[0][0], block[0][1]}, {block[1][0], block[1][1]}};
  const size_t sizes[] = {64, 64};
  trtc_v1_input inputs[] = {{.name = "INPUT0", .data = data[0], .sizes = sizes, .count = 2},
                            {.name = "INPUT1", .data = data[1], .sizes = sizes, .count = 2}};
  trtc_v1_request request = {sizeof(request), &options, inputs, 2, 0, 0};
  trtc_v1_queue *queue;
  OK(trtc_v1_queue_new(&queue));
  uint64_t space[128], ids;
  size_t count;
  int in_place, errors;
  int32_t sums[16] = {0};
  OK(trtc_v1_queue_take(queue, space, sizeof(space), &count));
  CHECK(count == 0);

  for (int i = 0; i < 16; i++) OK(trtc_v1_infer_queued(context, &request, queue, &sums[i], NULL));
  take_v1(queue, sizeof(space), 16, &ids, &in_place, &errors);
  CHECK(ids == 136 && in_place == 0 && errors == 0);
  for (int i = 0; i < 16; i++) CHECK(sums[i] == 99 || sums[i] == 101);
  FAILS(trtc_v1_infer_queued(context, &request, NULL, NULL, NULL), TRTC_KIND_ARGUMENT, "v1 queue is NULL");
  FAILS(trtc_v1_infer_queued(NULL, &request, queue, NULL, NULL), TRTC_KIND_ARGUMENT, "v1 context is NULL");
  FAILS(trtc_v1_queue_take(queue, NULL, sizeof(space), &count), TRTC_KIND_ARGUMENT, "expected at least 72");
  FAILS(trtc_v1_queue_take(queue, space, 71, &count), TRTC_KIND_ARGUMENT, "expected at least 72");
  FAILS(trtc_v1_queue_take(queue, space, sizeof(space), NULL), TRTC_KIND_ARGUMENT, "count");
  FAILS(trtc_v1_queue_new(NULL), TRTC_KIND_ARGUMENT, "queue");

  if (!streaming) {
    trtc_v1_prepared *prepared;
    OK(trtc_v1_prepare(context, &request, &prepared));
    uint64_t id, sum = 0;
    /* Two completions have their place in 1 KiB; none has in 100 bytes. */
    for (int round = 0; round < 2; round++) {
      sum = 0;
      for (int i = 0; i < 16; i++) {
        block[0][0][0] = 1000 + i;
        OK(trtc_v1_prepared_infer_queued(prepared, block, sizeof(block), queue, &sums[i], &id));
        block[0][0][0] = -1000;
        sum += id;
      }
      take_v1(queue, round == 0 ? sizeof(space) : 100, 16, &ids, &in_place, &errors);
      CHECK(ids == sum && in_place == (round == 0 ? 16 : 0) && errors == 0);
      for (int i = 0; i < 16; i++) CHECK(sums[i] == 1001 + i || sums[i] == 999 + i);
    }
    FAILS(trtc_v1_prepared_infer_queued(prepared, block, 8, queue, NULL, NULL), TRTC_KIND_ARGUMENT,
          "the inputs of a prepared request for model 'addsub_int32' have 8 bytes, expected 256");
    trtc_v1_prepared_free(prepared);
    FAILS(trtc_v1_prepared_infer_queued(prepared, block, sizeof(block), queue, NULL, NULL), TRTC_KIND_ARGUMENT, "released");
  }

  /* Those that are not taken are released with the queue. Inputs may be copied. */
  request.flags = TRTC_COPY_INPUTS;
  OK(trtc_v1_infer_queued(context, &request, queue, sums, NULL));
  memset(block, 0, sizeof(block));
  bool open = false;
  OK(trtc_v1_queue_wait(queue, &open));
  CHECK(open);
  trtc_v1_queue_close(queue);
  OK(trtc_v1_queue_wait(queue, &open));
  CHECK(open);
  trtc_v1_queue_free(queue);
  FAILS(trtc_v1_queue_wait(queue, &open), TRTC_KIND_ARGUMENT, "was released");
  trtc_v1_queue_close(queue);
  trtc_v1_queue_close(NULL);
  trtc_v1_queue_free(NULL);
  pthread_t waiting;
  OK(trtc_v1_queue_new(&queue));
  CHECK(pthread_create(&waiting, NULL, wait_for_end, queue) == 0);
  trtc_v1_queue_close(queue);
  CHECK(pthread_join(waiting, NULL) == 0);
  trtc_v1_queue_free(queue);
  trtc_v1_context_free(context);
}

/* Releasing a context cancels its queued requests: all have completed when it returns. */
static void v1_queued_release(const trtc_settings *to) {
  trtc_v1_context *context;
  OK(trtc_v1_context_new(to, "endless", -1, 0, false, 0, &context));
  const float one = 1;
  const void *data[] = {&one};
  const size_t sizes[] = {sizeof(one)};
  const int64_t shape[] = {1};
  trtc_v1_options options = {.struct_size = sizeof(options)};
  trtc_v1_input input = {.name = "INPUT0", .dims = shape, .dim_count = 1, .data = data, .sizes = sizes, .count = 1};
  trtc_v1_request request = {sizeof(request), &options, &input, 1, 0, 0};
  trtc_v1_queue *queue;
  OK(trtc_v1_queue_new(&queue));
  uint64_t ids, first;
  int in_place, errors;
  for (int i = 0; i < 3; i++) OK(trtc_v1_infer_queued(context, &request, queue, NULL, i == 0 ? &first : NULL));
  OK(trtc_v1_cancel(context, first));
  take_v1(queue, 1024, 1, &ids, &in_place, &errors);
  CHECK(ids == first && errors == 1);
  trtc_v1_context_free(context);
  take_v1(queue, 1024, 2, &ids, &in_place, &errors);
  CHECK(ids == 2 * first + 3 && errors == 2);
  trtc_v1_queue_free(queue);
}

static void v1_context(const trtc_settings *to, bool streaming) {
  trtc_v1_context *context;
  OK(trtc_v1_context_new(to, "addsub_int32", -1, 0, streaming, 0, &context));
  const trtc_v1_model *model;
  OK(trtc_v1_context_model(context, &model));
  CHECK(strcmp(model->name, "addsub_int32") == 0 && model->max_batch_size == 8 && model->version == -1);
  CHECK(model->input_count == 2 && strcmp(model->inputs[1].name, "INPUT1") == 0);
  CHECK(model->inputs[0].data_type == TRTC_TYPE_INT32 && model->inputs[0].byte_size == 64);
  CHECK(model->outputs[0].dim_count == 1 && model->outputs[0].dims[0] == 16 && model->config_size > 0);

  /* One call: a batch of two, one tensor and classes. */
  int32_t counted[32], ones[32];
  for (int i = 0; i < 32; i++) {
    counted[i] = i;
    ones[i] = 1;
  }
  const void *counted_data[] = {counted, counted + 16}, *ones_data[] = {ones, ones + 16};
  const size_t sizes[] = {64, 64};
  trtc_v1_input inputs[2];
  memset(inputs, 0, sizeof(inputs));
  inputs[0].name = "INPUT0";
  inputs[0].data = counted_data;
  inputs[0].sizes = sizes;
  inputs[0].count = 2;
  inputs[1] = inputs[0];
  inputs[1].name = "INPUT1";
  inputs[1].data = ones_data;
  trtc_v1_output outputs[2];
  memset(outputs, 0, sizeof(outputs));
  outputs[0].name = "OUTPUT1";
  outputs[1].name = "OUTPUT0";
  outputs[1].class_count = 3;
  trtc_v1_options options;
  memset(&options, 0, sizeof(options));
  options.struct_size = sizeof(options);
  options.batch_size = 2;
  options.outputs = outputs;
  options.output_count = 2;
  trtc_v1_request request;
  memset(&request, 0, sizeof(request));
  request.struct_size = sizeof(request);
  request.options = &options;
  request.inputs = inputs;
  request.input_count = 2;
  trtc_v1_result *result;
  OK(trtc_v1_infer(context, &request, &result));
  const trtc_v1_result_info *info;
  OK(trtc_v1_result_get(result, &info));
  CHECK(info->batch_size == 2 && info->model_version == 1 && info->request_id > 0 && info->output_count == 2);
  CHECK(strcmp(info->model_name, "addsub_int32") == 0);
  const trtc_v1_result_output *difference = &info->outputs[0], *classes = &info->outputs[1];
  CHECK(strcmp(difference->name, "OUTPUT1") == 0 && difference->size == 128 && difference->entry_count == 2);
  CHECK(difference->dim_count == 1 && difference->dims[0] == 16 && !difference->is_class);
  const int32_t *values = difference->entries[1].data;
  for (int i = 0; i < 16; i++) CHECK(values[i] == 16 + i - 1);
  CHECK(classes->is_class && classes->entries[0].class_count == 3);
  CHECK(classes->entries[1].classes[0].index == 15 && classes->entries[1].classes[0].value == 32.0f);
  trtc_v1_result_free(result);
  FAILS(trtc_v1_result_get(result, &info), TRTC_KIND_ARGUMENT, "released");

  if (streaming)
    FAILS(trtc_v1_prepare(context, &request, &(trtc_v1_prepared *){NULL}), TRTC_KIND_ARGUMENT,
          "requests of a stream cannot be prepared");
  else
    prepared_requests(context, &request, &outputs[1]);

  /* Stateful form, with the checks of the original library. */
  options.batch_size = 9;
  FAILS(trtc_v1_set_options(context, &options), TRTC_KIND_ARGUMENT,
        "run batch-size 9 exceeds maximum batch size 8 allowed for model 'addsub_int32'");
  options.batch_size = 1;
  outputs[1].class_count = 0;
  outputs[1].name = "OUTPUT";
  FAILS(trtc_v1_set_options(context, &options), TRTC_KIND_ARGUMENT, "unknown output 'OUTPUT' for 'addsub_int32'");
  outputs[1].name = "OUTPUT0";
  OK(trtc_v1_set_options(context, &options));
  FAILS(trtc_v1_input_add_data(context, 0, counted, 60), TRTC_KIND_ARGUMENT,
        "invalid size 60 bytes for input 'INPUT0', expects 64 bytes");
  FAILS(trtc_v1_input_add_data(context, 2, counted, 64), TRTC_KIND_ARGUMENT, "input 2 of model 'addsub_int32'");
  OK(trtc_v1_input_add_data(context, 0, counted, 64));
  FAILS(trtc_v1_run(context, 0, 0, &result), TRTC_KIND_ARGUMENT,
        "expecting 1 invocations of SetRaw for input 'INPUT1', have 0");
  OK(trtc_v1_input_add_data(context, 1, ones, 64));
  int64_t byte_size;
  uint64_t total;
  OK(trtc_v1_input_sizes(context, 1, &byte_size, &total));
  CHECK(byte_size == 64 && total == 64);
  OK(trtc_v1_run(context, 0, 0, &result));
  trtc_v1_result_free(result);

  /* Asynchronous: with a callback, in order; without, taken later. Copied data may change at once. */
  struct outcomes all;
  outcomes_init(&all);
  uint64_t id;
  for (int i = 0; i < 8; i++) {
    counted[0] = i;
    OK(trtc_v1_run_async(context, TRTC_COPY_INPUTS, 0, v1_done, &all, &id));
    counted[0] = -1000;
  }
  wait_for(&all, &all.results, 8);
  CHECK(all.errors == 0 && (!streaming || (all.sum == 6 && all.last == id)));
  counted[0] = 0;
  inputs[0].count = inputs[1].count = 1;
  OK(trtc_v1_infer_async(context, &request, NULL, NULL, &id));
  uint64_t completed;
  OK(trtc_v1_next_completed(context, true, &completed));
  CHECK(completed == id);
  OK(trtc_v1_take(context, 0, true, &completed, &result));
  CHECK(completed == id);
  OK(trtc_v1_result_get(result, &info));
  CHECK(info->output_count == 2);
  trtc_v1_result_free(result);
  FAILS(trtc_v1_take(context, id, true, NULL, &result), TRTC_KIND_ARGUMENT, "No asynchronous requests have been sent");
  OK(trtc_v1_cancel(context, id));
  trtc_v1_statistics statistics;
  OK(trtc_v1_context_statistics(context, &statistics));
  CHECK(statistics.completed_request_count >= 11 && statistics.total_request_time_ns > 0);
  trtc_v1_context_free(context);
  FAILS(trtc_v1_input_reset(context, 0), TRTC_KIND_ARGUMENT, "the v1 context was released");

  FAILS(trtc_v1_context_new(to, "absent", -1, 0, streaming, 0, &context), TRTC_KIND_SERVER, "unknown model 'absent'");
}

/* Releasing a context cancels its requests and waits for their callbacks. */
static void v1_release(const trtc_settings *to) {
  trtc_v1_context *context;
  OK(trtc_v1_context_new(to, "endless", -1, 0, false, 0, &context));
  trtc_v1_options options;
  memset(&options, 0, sizeof(options));
  options.struct_size = sizeof(options);
  OK(trtc_v1_set_options(context, &options));
  const float one = 1;
  const int64_t shape[] = {1};
  OK(trtc_v1_input_set_shape(context, 0, shape, 1));
  OK(trtc_v1_input_add_data(context, 0, &one, sizeof(one)));
  struct outcomes all;
  outcomes_init(&all);
  uint64_t first, second;
  OK(trtc_v1_run_async(context, 0, 0, v1_done, &all, &first));
  OK(trtc_v1_run_async(context, 0, 0, v1_done, &all, &second));
  CHECK(second == first + 1);
  OK(trtc_v1_cancel(context, first));
  wait_for(&all, &all.errors, 1);
  CHECK(all.kind == TRTC_KIND_CANCELLED && all.last == first);
  trtc_v1_context_free(context);
  CHECK(all.errors == 2 && all.kind == TRTC_KIND_CANCELLED);
}

static trtc_v2_request addsub(const int32_t *counted, const int32_t *ones, trtc_v2_input *inputs) {
  static const int64_t shape[] = {1, 16};
  memset(inputs, 0, 2 * sizeof(*inputs));
  inputs[0].name = "INPUT0";
  inputs[0].datatype = "INT32";
  inputs[0].shape = shape;
  inputs[0].rank = 2;
  inputs[0].data = counted;
  inputs[0].size = 64;
  inputs[1] = inputs[0];
  inputs[1].name = "INPUT1";
  inputs[1].data = ones;
  trtc_v2_request request;
  memset(&request, 0, sizeof(request));
  request.struct_size = sizeof(request);
  request.model = "addsub_int32";
  request.inputs = inputs;
  request.input_count = 2;
  return request;
}

#define HAS(buffer, text) CHECK(strstr((buffer).data, text) != NULL)

/* Waits for completed calls, takes them two at a time, and returns how many there were. */
static int take(trtc_completion_queue *queue, int descriptor, int sum[2]) {
  struct pollfd ready = {.fd = descriptor, .events = POLLIN};
  CHECK(poll(&ready, 1, 60000) == 1);
  trtc_completion completions[2];
  int taken = 0;
  size_t count;
  do {
    OK(trtc_completion_queue_take(queue, completions, 2, &count));
    for (size_t i = 0; i < count; i++) {
      CHECK(completions[i].call > 0);
      sum[completions[i].error != NULL] += *(int *)completions[i].user;
      trtc_error_free(completions[i].error);
      trtc_v2_result_free(completions[i].result);
    }
    taken += (int)count;
  } while (count > 0);
  return taken;
}

/* Calls that complete into a queue. */
static void queued(trtc_v2_client *client, const trtc_v2_request *request) {
  trtc_completion_queue *queue;
  int descriptor, users[5] = {1, 10, 100, 1000, 10000}, sum[2] = {0, 0};
  OK(trtc_completion_queue_new(&queue, &descriptor));
  trtc_v2_request unknown = *request;
  unknown.model = "nobody";
  uint64_t last = 0;
  for (int i = 0; i < 4; i++) {
    uint64_t id;
    OK(trtc_v2_infer_queued(client, request, queue, &users[i], &id));
    CHECK(id > last);
    last = id;
  }
  OK(trtc_v2_infer_queued(client, &unknown, queue, &users[4], NULL));
  for (int taken = 0; taken < 5;) taken += take(queue, descriptor, sum);
  CHECK(sum[0] == 1111 && sum[1] == 10000);
  FAILS(trtc_v2_infer_queued(client, request, NULL, NULL, NULL), TRTC_KIND_ARGUMENT, "completion queue is NULL");
  size_t count;
  FAILS(trtc_completion_queue_take(queue, NULL, 1, &count), TRTC_KIND_ARGUMENT, "array of completions is NULL");
  FAILS(trtc_completion_queue_new(NULL, &descriptor), TRTC_KIND_ARGUMENT, "queue");
  /* Not taken: released with the queue. */
  OK(trtc_v2_infer_queued(client, request, queue, NULL, NULL));
  struct pollfd ready = {.fd = descriptor, .events = POLLIN};
  CHECK(poll(&ready, 1, 60000) == 1);
  trtc_completion_queue_free(queue);
  FAILS(trtc_completion_queue_take(queue, NULL, 0, &count), TRTC_KIND_ARGUMENT, "was released");
  trtc_completion_queue_free(NULL);
}

static void v2(const trtc_settings *to) {
  trtc_v2_client *client;
  OK(trtc_v2_client_new(to, &client));
  bool live = false, ready = false, model = false;
  OK(trtc_v2_live(client, 0, &live));
  OK(trtc_v2_ready(client, 0, &ready));
  OK(trtc_v2_model_ready(client, "addsub_int32", "1", 0, &model));
  CHECK(live && ready && model);
  OK(trtc_v2_model_ready(client, "absent", NULL, 0, &model));
  CHECK(!model);
  trtc_buffer json = {0};
  OK(trtc_v2_server_metadata(client, 0, &json));
  HAS(json, "\"extensions\":[\"");
  trtc_buffer_free(&json);
  OK(trtc_v2_model_metadata(client, "addsub_int32", NULL, 0, &json));
  HAS(json, "\"shape\":[-1,16]");
  trtc_buffer_free(&json);
  OK(trtc_v2_model_config(client, "addsub_int32", NULL, 0, &json));
  HAS(json, "\"max_batch_size\":8");
  trtc_buffer_free(&json);
  OK(trtc_v2_statistics(client, NULL, NULL, 0, &json));
  HAS(json, "\"model_stats\":[{");
  trtc_buffer_free(&json);
  OK(trtc_v2_repository_index(client, true, 0, &json));
  CHECK(((const char *)json.data)[0] == '[');
  trtc_buffer_free(&json);
  OK(trtc_v2_system_memory_status(client, NULL, 0, &json));
  trtc_buffer_free(&json);
  OK(trtc_v2_cuda_memory_status(client, NULL, 0, &json));
  trtc_buffer_free(&json);
  OK(trtc_v2_log_settings(client, "{\"log_verbose_level\":0}", 0, &json));
  HAS(json, "\"log_verbose_level\":0");
  trtc_buffer_free(&json);
  OK(trtc_v2_trace_settings(client, NULL, NULL, 0, &json));
  HAS(json, "\"trace_rate\":\"");
  trtc_buffer_free(&json);
  FAILS(trtc_v2_log_settings(client, "[]", 0, &json), TRTC_KIND_ARGUMENT, "expected an object");
  FAILS(trtc_v2_model_config(client, "absent", NULL, 0, &json), TRTC_KIND_SERVER, "'absent' is not found");
  FAILS(trtc_v2_register_system_memory(client, "r", "/trtserver_absent", 0, 64, 0), TRTC_KIND_SERVER, "/trtserver_absent");
  FAILS(trtc_v2_register_cuda_memory(client, "r", "short", 5, 0, 64, 0), TRTC_KIND_SERVER, "");
  OK(trtc_v2_unregister_system_memory(client, NULL, 0));
  OK(trtc_v2_unregister_cuda_memory(client, NULL, 0));
  OK(trtc_v2_unload_model(client, "identity_bool", false, 0));
  OK(trtc_v2_load_model(client, "identity_bool", NULL, NULL, 0, 0));

  int32_t counted[16], ones[16];
  for (int i = 0; i < 16; i++) {
    counted[i] = i;
    ones[i] = 1;
  }
  trtc_v2_input inputs[2];
  trtc_v2_request request = addsub(counted, ones, inputs);
  request.id = "seven";
  trtc_parameter parameter = {.name = "color", .type = TRTC_PARAMETER_STRING, .string_value = "red"};
  request.parameters = &parameter;
  request.parameter_count = 1;
  trtc_v2_output output = {.name = "OUTPUT1"};
  request.outputs = &output;
  request.output_count = 1;
  trtc_v2_result *result;
  OK(trtc_v2_infer(client, &request, &result));
  const trtc_v2_result_info *info;
  OK(trtc_v2_result_get(result, &info));
  CHECK(strcmp(info->id, "seven") == 0 && strcmp(info->model_version, "1") == 0 && info->output_count == 1);
  CHECK(strcmp(info->outputs[0].datatype, "INT32") == 0 && info->outputs[0].rank == 2 && info->outputs[0].size == 64);
  const int32_t *values = info->outputs[0].data;
  for (int i = 0; i < 16; i++) CHECK(values[i] == i - 1);
  trtc_v2_result_free(result);
  output.class_count = 2;
  OK(trtc_v2_infer(client, &request, &result));
  OK(trtc_v2_result_get(result, &info));
  CHECK(strcmp(info->outputs[0].datatype, "BYTES") == 0);
  trtc_v2_result_free(result);

  /* What is wrong with a request is named, and nothing is sent. */
  inputs[0].size = 60;
  FAILS(trtc_v2_infer(client, &request, &result), TRTC_KIND_ARGUMENT, "has 64 bytes, got 60");
  inputs[0].size = 64;
  inputs[0].data = NULL;
  FAILS(trtc_v2_infer(client, &request, &result), TRTC_KIND_ARGUMENT, "the data of input 'INPUT0' is NULL");
  inputs[0].data = counted;
  request.flags = 64;
  FAILS(trtc_v2_infer(client, &request, &result), TRTC_KIND_ARGUMENT, "unknown bits");
  request.flags = 0;
  request.sequence_start = true;
  FAILS(trtc_v2_infer(client, &request, &result), TRTC_KIND_ARGUMENT, "without a sequence id");
  request.sequence_start = false;
  request.struct_size = 3;
  FAILS(trtc_v2_infer(client, &request, &result), TRTC_KIND_ARGUMENT, "struct_size of request is 3");
  request.struct_size = sizeof(request);
  request.model = "\xff";
  FAILS(trtc_v2_infer(client, &request, &result), TRTC_KIND_ARGUMENT, "is not UTF-8");
  request.model = "addsub_int32";
  FAILS(trtc_v2_infer(client, NULL, &result), TRTC_KIND_ARGUMENT, "request is NULL");
  output.name = "NONE";
  output.class_count = 0;
  FAILS(trtc_v2_infer(client, &request, &result), TRTC_KIND_SERVER, "'NONE'");
  request.output_count = 0;

  /* Asynchronous calls, cancellation, and the release of a client with a call that does not end. */
  struct outcomes all;
  outcomes_init(&all);
  for (int i = 0; i < 4; i++) OK(trtc_v2_infer_async(client, &request, v2_done, &all, NULL));
  wait_for(&all, &all.results, 4);
  CHECK(all.errors == 0 && all.sum == 1);
  FAILS(trtc_v2_infer_async(client, &request, NULL, NULL, NULL), TRTC_KIND_ARGUMENT, "the callback is NULL");
  queued(client, &request);
  const float one = 1;
  const int64_t shape[] = {1, 1};
  trtc_v2_input input = {.name = "INPUT0", .datatype = "FP32", .shape = shape, .rank = 2, .data = &one, .size = 4};
  request.model = "endless";
  request.inputs = &input;
  request.input_count = 1;
  uint64_t first;
  OK(trtc_v2_infer_async(client, &request, v2_done, &all, &first));
  OK(trtc_v2_infer_async(client, &request, v2_done, &all, NULL));
  OK(trtc_v2_cancel(client, first));
  wait_for(&all, &all.errors, 1);
  CHECK(all.kind == TRTC_KIND_CANCELLED && all.last == first);
  request.deadline_us = 20000;
  FAILS(trtc_v2_infer(client, &request, &result), TRTC_KIND_DEADLINE, "");
  trtc_v2_client_free(client);
  CHECK(all.errors == 2);
}

static trtc_v2_request many(trtc_v2_input *input, int32_t *value) {
  static const int64_t shape[] = {1, 1};
  memset(input, 0, sizeof(*input));
  input->name = "INPUT0";
  input->datatype = "FP32";
  input->shape = shape;
  input->rank = 2;
  input->data = value;
  input->size = 4;
  trtc_v2_request request;
  memset(&request, 0, sizeof(request));
  request.struct_size = sizeof(request);
  request.model = "many";
  request.id = "m";
  request.inputs = input;
  request.input_count = 1;
  request.flags = TRTC_EMPTY_FINAL_RESPONSE;
  return request;
}

static void v2_stream(const trtc_settings *to, const trtc_settings *http) {
  trtc_v2_client *client;
  trtc_v2_stream *stream;
  OK(trtc_v2_client_new(http, &client));
  FAILS(trtc_v2_stream_open(client, NULL, NULL, 0, &stream), TRTC_KIND_ARGUMENT, "streams need gRPC");
  trtc_v2_client_free(client);
  OK(trtc_v2_client_new(to, &client));
  OK(trtc_v2_stream_open(client, NULL, NULL, 0, &stream));
  int32_t value = 7;
  trtc_v2_input input;
  trtc_v2_request request = many(&input, &value);
  OK(trtc_v2_stream_send(stream, &request));
  value = 0; /* It was copied. */
  trtc_v2_result *result;
  bool ended = true, final = false;
  while (!final) {
    OK(trtc_v2_stream_next(stream, 0, &result, &ended));
    CHECK(result != NULL && !ended);
    const trtc_v2_result_info *info;
    OK(trtc_v2_result_get(result, &info));
    CHECK(strcmp(info->id, "m") == 0);
    final = info->is_final;
    trtc_v2_result_free(result);
  }
  request.model = "absent";
  OK(trtc_v2_stream_send(stream, &request));
  FAILS(trtc_v2_stream_next(stream, 0, &result, &ended), TRTC_KIND_SERVER, "absent");
  CHECK(!ended);
  FAILS(trtc_v2_stream_next(stream, 1000, &result, &ended), TRTC_KIND_DEADLINE, "no response");
  OK(trtc_v2_stream_close(stream));
  FAILS(trtc_v2_stream_send(stream, &request), TRTC_KIND_ARGUMENT, "the stream was closed");
  OK(trtc_v2_stream_next(stream, 0, &result, &ended));
  CHECK(result == NULL && ended);
  trtc_v2_stream_free(stream);

  struct outcomes all;
  outcomes_init(&all);
  OK(trtc_v2_stream_open(client, v2_done, &all, 0, &stream));
  request.model = "many";
  OK(trtc_v2_stream_send(stream, &request));
  OK(trtc_v2_stream_close(stream));
  wait_for(&all, &all.ends, 1);
  CHECK(all.results > 0 && all.errors == 0);
  FAILS(trtc_v2_stream_next(stream, 0, &result, &ended), TRTC_KIND_ARGUMENT, "go to its callback");
  trtc_v2_stream_free(stream);
  /* Released while it waits. */
  OK(trtc_v2_stream_open(client, v2_done, &all, 0, &stream));
  trtc_v2_stream_free(stream);
  CHECK(all.ends == 2 && all.errors == 1 && all.kind == TRTC_KIND_CANCELLED);
  trtc_v2_client_free(client);
}

static void pictures(const char *path) {
  trtc_image image, small;
  OK(trtc_image_read(path, &image));
  CHECK(image.width > 1 && image.height > 1 && image.pixels != NULL);
  OK(trtc_image_resize(&image, 5, 3, &small));
  CHECK(small.width == 5 && small.height == 3);
  FAILS(trtc_image_resize(&image, 0, 3, &small), TRTC_KIND_ARGUMENT, "expected at most");
  trtc_image_free(&small);
  trtc_image_free(&image);
  trtc_image_free(&image);
  FAILS(trtc_image_read("/absent.png", &image), TRTC_KIND_FILE, "cannot read the picture /absent.png");
  FAILS(trtc_image_read(__FILE__, &image), TRTC_KIND_FILE, "neither a PNG nor a JPEG");
}

static void connections(void) {
  trtc_v2_client *client;
  trtc_settings wrong = settings("localhost:not a port", TRTC_HTTP);
  FAILS(trtc_v2_client_new(&wrong, &client), TRTC_KIND_ARGUMENT, "is not a URL");
  wrong = settings(NULL, TRTC_HTTP);
  FAILS(trtc_v2_client_new(&wrong, &client), TRTC_KIND_ARGUMENT, "the URL is NULL");
  wrong = settings("localhost", 2);
  FAILS(trtc_v2_client_new(&wrong, &client), TRTC_KIND_ARGUMENT, "protocol 2 is unknown");
  for (int32_t protocol = TRTC_HTTP; protocol <= TRTC_GRPC; protocol++) {
    /* Nothing listens on port 1. */
    trtc_settings refused = settings("localhost:1", protocol);
    trtc_header header = {"X-Test", "yes"};
    refused.headers = &header;
    refused.header_count = 1;
    OK(trtc_v2_client_new(&refused, &client));
    bool live;
    FAILS(trtc_v2_live(client, 0, &live), TRTC_KIND_CONNECTION, "");
    trtc_v2_client_free(client);
  }
}

int main(int argc, char **argv) {
  CHECK(argc == 4);
  size_t size = 0;
  CHECK(trtc_descriptors(&size) != NULL && size > 1000 && strlen(trtc_version()) > 4);
  CHECK(strcmp(trtc_code_name(TRTC_CODE_INVALID_ARG), "INVALID_ARG") == 0 && trtc_error_code(NULL) == 1);
  const trtc_settings http = settings(argv[1], TRTC_HTTP), grpc = settings(argv[2], TRTC_GRPC);
  const trtc_settings *both[] = {&http, &grpc};
  for (int i = 0; i < 2; i++) {
    v1_server(both[i]);
    v1_context(both[i], false);
    v1_release(both[i]);
    v1_queued(both[i], false);
    v1_queued_release(both[i]);
    v2(both[i]);
  }
  v1_context(&grpc, true);
  v1_queued(&grpc, true);
  v2_stream(&grpc, &http);
  pictures(argv[3]);
  connections();
  CHECK(trtc_live_handles() == 0);
  puts("all checks passed");
  return 0;
}
