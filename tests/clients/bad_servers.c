/* Calls of the C interface to servers that misbehave: bad_servers CUT_GRPC_ADDRESS ADDRESS...
 *
 * Each ADDRESS refuses, answers wrongly or says nothing; the first cuts its connections in the middle of a stream. Every call ends
 * within its deadline with an error that names the server. */
#include <pthread.h>
#include <string.h>

#include "check_calls.h"

/* Long enough for an answer, which may be wrong in a way of its own; a silent server takes as long in each call. */
#define DEADLINE_US 400000

#define FAILS(call, address) fails(call, address, #call, __LINE__)

static void fails(trtc_error *error, const char *address, const char *call, int line) {
  trtc_error_info info;
  trtc_error_get(error, &info);
  const int named = error != NULL && *info.message != '\0' && strstr(info.asked, address) != NULL;
  if (!named || info.kind == TRTC_KIND_ARGUMENT || info.kind == TRTC_KIND_INTERNAL) {
    fprintf(stderr, "line %d: %s with %s: kind %d, message '%s', asked '%s'\n", line, call, address, info.kind,
            info.message == NULL ? "" : info.message, info.asked == NULL ? "" : info.asked);
    exit(1);
  }
  trtc_error_free(error);
}

/* The outcome of one asynchronous call. */
struct outcome {
  pthread_mutex_t lock;
  pthread_cond_t changed;
  trtc_error *error;
};

static void done(void *user, uint64_t call, trtc_error *error, trtc_v2_result *result) {
  (void)call;
  struct outcome *outcome = user;
  CHECK(error != NULL && result == NULL);
  pthread_mutex_lock(&outcome->lock);
  outcome->error = error;
  pthread_cond_signal(&outcome->changed);
  pthread_mutex_unlock(&outcome->lock);
}

static trtc_settings settings(const char *address, int32_t protocol) {
  trtc_settings settings;
  memset(&settings, 0, sizeof(settings));
  settings.struct_size = sizeof(settings);
  settings.url = address;
  settings.protocol = protocol;
  settings.deadline_us = DEADLINE_US;
  return settings;
}

static trtc_v2_request echo(trtc_v2_input *input) {
  static const float values[2] = {1, 2};
  static const int64_t shape[2] = {1, 2};
  memset(input, 0, sizeof(*input));
  input->name = "INPUT0";
  input->datatype = "FP32";
  input->shape = shape;
  input->rank = 2;
  input->data = values;
  input->size = sizeof(values);
  trtc_v2_request request;
  memset(&request, 0, sizeof(request));
  request.struct_size = sizeof(request);
  request.model = "echo";
  request.inputs = input;
  request.input_count = 1;
  return request;
}

static void v1(const char *address, const trtc_settings *to) {
  trtc_v1_client *client;
  trtc_v1_context *context;
  trtc_buffer buffer;
  OK(trtc_v1_client_new(to, &client));
  FAILS(trtc_v1_status(client, "echo", 0, &buffer), address);
  FAILS(trtc_v1_repository_index(client, 0, &buffer), address);
  FAILS(trtc_v1_load_model(client, "echo", 0), address);
  trtc_v1_client_free(client);
  FAILS(trtc_v1_context_new(to, "echo", -1, 0, false, 0, &context), address);
  if (to->protocol == TRTC_GRPC) FAILS(trtc_v1_context_new(to, "echo", -1, 0, true, 0, &context), address);
}

static void v2(const char *address, const trtc_settings *to) {
  trtc_v2_client *client;
  trtc_v2_result *result;
  trtc_v2_stream *stream;
  trtc_buffer buffer;
  trtc_v2_input input;
  const trtc_v2_request request = echo(&input);
  OK(trtc_v2_client_new(to, &client));
  FAILS(trtc_v2_server_metadata(client, 0, &buffer), address);
  FAILS(trtc_v2_model_config(client, "echo", NULL, 0, &buffer), address);
  FAILS(trtc_v2_infer(client, &request, &result), address);
  struct outcome outcome = {.error = NULL};
  pthread_mutex_init(&outcome.lock, NULL);
  pthread_cond_init(&outcome.changed, NULL);
  OK(trtc_v2_infer_async(client, &request, done, &outcome, NULL));
  pthread_mutex_lock(&outcome.lock);
  while (outcome.error == NULL) pthread_cond_wait(&outcome.changed, &outcome.lock);
  pthread_mutex_unlock(&outcome.lock);
  FAILS(outcome.error, address);
  if (to->protocol == TRTC_GRPC) {
    trtc_error *error = trtc_v2_stream_open(client, NULL, NULL, 0, &stream);
    if (error == NULL) {
      bool ended;
      error = trtc_v2_stream_send(stream, &request);
      if (error == NULL) error = trtc_v2_stream_next(stream, 0, &result, &ended);
      trtc_v2_stream_free(stream);
    }
    FAILS(error, address);
  }
  trtc_v2_client_free(client);
}

/* Requests over one stream until it breaks. */
static void cut_stream(const char *address) {
  trtc_settings to = settings(address, TRTC_GRPC);
  to.deadline_us = 0;
  trtc_v2_client *client;
  trtc_v2_stream *stream;
  trtc_v2_input input;
  const trtc_v2_request request = echo(&input);
  OK(trtc_v2_client_new(&to, &client));
  OK(trtc_v2_stream_open(client, NULL, NULL, 0, &stream));
  int responses = 0;
  trtc_error *error = NULL;
  while (error == NULL) {
    trtc_v2_result *result = NULL;
    bool ended = false;
    error = trtc_v2_stream_send(stream, &request);
    if (error == NULL) error = trtc_v2_stream_next(stream, 0, &result, &ended);
    CHECK(error != NULL || !ended);
    responses += result != NULL;
    trtc_v2_result_free(result);
  }
  FAILS(error, address);
  CHECK(responses > 0);
  trtc_v2_stream_free(stream);
  trtc_v2_client_free(client);
}

int main(int argc, char **argv) {
  CHECK(argc > 2);
  cut_stream(argv[1]);
  for (int i = 2; i < argc; i++) {
    for (int32_t protocol = TRTC_HTTP; protocol <= TRTC_GRPC; protocol++) {
      const trtc_settings to = settings(argv[i], protocol);
      v1(argv[i], &to);
      v2(argv[i], &to);
    }
  }
  CHECK(trtc_live_handles() == 0);
  printf("all checks passed\n");
  return 0;
}
