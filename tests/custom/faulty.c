/* Misbehaves on command. The setting `fault` (a parameter or tag of the model) selects the behaviour of initialize and
   finalize, the input COMMAND (STRING [1]) that of execute:

     initialize        initialize_error, initialize_silent_error, initialize_late_error (with a context),
                       initialize_crash, initialize_abort, initialize_exit
     finalize          finalize_error, finalize_silent_error
     execute           the names in `run_command`

   OUTPUT0 (INT32 [1]) is INPUT0 (INT32 [1]) + 1, BATCH (INT32 [1]) the number of payloads. */
#include "generation.h"

#include <pthread.h>

enum { WITH_TEXT = 7, WITHOUT_TEXT = 8, PAYLOAD_WITH_TEXT = 9, NO_INPUT = 10, NO_OUTPUT = 11, AT_THE_END = 12,
       TWICE = 13 };

/* Defined in no library: with lazy binding it must not matter until it is called. */
void undefined_function(void);

typedef struct {
  bool finished;
  Bytes fault;
  void* late_content;
  CustomGetOutput late_output;
  CustomGetNextInput late_input;
  void* late_context;
} Context;

static Bytes copied(Bytes bytes) {
  uint8_t* copy = malloc(bytes.size + 1);
  if (copy == NULL) abort();
  if (bytes.size > 0) memcpy(copy, bytes.at, bytes.size);
  Bytes made = {copy, bytes.size};
  return made;
}

/* A real fault: a handler may expect the fault to repeat, which a raised signal does not. */
static void crash(void) {
  int* volatile nowhere = NULL;
  *nowhere = 1;
}

static int library_start(const Start* start, void** context) {
  Bytes fault = find_setting(start->config, "fault");
  trace("initialize");
  if (is_text(fault, "initialize_error")) return WITH_TEXT;
  if (is_text(fault, "initialize_silent_error")) return WITHOUT_TEXT;
  if (is_text(fault, "initialize_crash")) crash();
  if (is_text(fault, "initialize_abort")) abort();
  if (is_text(fault, "initialize_exit")) exit(3);
  /* Contexts are never freed, so that a second finalize is detected. */
  Context* made = calloc(1, sizeof *made);
  if (made == NULL) abort();
  made->fault = copied(fault);
  *context = made;
  return is_text(fault, "initialize_late_error") ? WITH_TEXT : 0;
}

static const char* library_explain(void* opaque, int error) {
  (void)opaque;
  switch (error) {
    case WITH_TEXT: return "out of ink";
    case PAYLOAD_WITH_TEXT: return "out of paper";
    case NO_INPUT: return "an input cannot be read";
    case NO_OUTPUT: return "no memory for an output";
    case AT_THE_END: return "no good end";
    case TWICE: return "finished twice";
    default: return NULL;
  }
}

static int library_finish(void* opaque) {
  Context* context = opaque;
  trace("finalize %s", context == NULL ? "nothing" : "context");
  if (context == NULL) return 0;
  if (context->finished) return TWICE;
  context->finished = true;
  if (is_text(context->fault, "finalize_error")) return AT_THE_END;
  if (is_text(context->fault, "finalize_silent_error")) return WITHOUT_TEXT;
  return 0;
}

/* Waits until the test has created a file of this name in the directory CUSTOM_RELEASE, and removes it. */
static void wait_for(const char* name) {
  const char* folder = getenv("CUSTOM_RELEASE");
  char path[512];
  snprintf(path, sizeof path, "%s/%s", folder == NULL ? "." : folder, name);
  while (unlink(path) != 0) usleep(2000);
}

/* The `_late` functions access an execution after the test has received its response. */
static void* write_late(void* opaque) {
  Context* context = opaque;
  wait_for("write_late");
  *(volatile int32_t*)context->late_content = -1;
  trace("wrote late");
  return NULL;
}

static void* call_late(void* opaque) {
  Context* context = opaque;
  wait_for("call_late");
  int64_t shape[2] = {1, 1};
  void* content = NULL;
  bool output = ask_output(context->late_output, context->late_context, "OUTPUT0", 2, shape, 4, &content);
  const void* block = NULL;
  uint64_t size = 4;
  bool input = next_block(context->late_input, context->late_context, "INPUT0", &block, &size);
  trace("called late: output %s, input %s", output ? "given" : "refused", input ? "given" : "refused");
  return NULL;
}

static void* die(void* opaque) {
  (void)opaque;
  abort();
}

static void spawn(void* (*body)(void*), void* context) {
  pthread_t thread;
  if (pthread_create(&thread, NULL, body, context) != 0) abort();
  pthread_detach(thread);
}

typedef struct {
  CustomGetNextInput input;
  CustomGetOutput output;
} Calls;

/* Requests an INT32 output of this shape and size, and fills it. */
static bool ask(Calls calls, CustomPayload* payload, const char* name, size_t rank, int64_t* shape, uint64_t size,
                int value) {
  void* content = NULL;
  bool given = ask_output(calls.output, payload->output_context, name, rank, shape, size, &content);
  for (uint64_t i = 0; given && content != NULL && i < size / 4; i++) ((int32_t*)content)[i] = value;
  return given;
}

/* Executes the command. Returns the error code of the payload, or -1 to respond normally. `*whole` is the code of the
   whole execution. */
static int run_command(Context* context, Bytes command, CustomPayload* payload, Calls calls, int* whole) {
  void* in = payload->input_context;
  void* out = payload->output_context;
  int64_t shape[2] = {1, 1};
  int64_t wrong_rank[3] = {1, 1, 1};
  int64_t wrong[2] = {1, 2};
  int64_t negative[2] = {1, -1};
  int64_t huge[2] = {1, INT64_MAX};
  uint64_t size = 4;
  const void* block;
  void* content;
#define IS(text) is_text(command, text)
  if (IS("") || IS("good")) return -1;
  if (IS("execute_error")) return *whole = WITH_TEXT, 0;
  if (IS("execute_silent_error")) return *whole = WITHOUT_TEXT, 0;
  if (IS("payload_error")) return PAYLOAD_WITH_TEXT;
  if (IS("payload_silent_error")) return WITHOUT_TEXT;
  if (IS("unasked")) return ask(calls, payload, "UNKNOWN", 2, shape, 4, 1), -1;
  if (IS("no_response")) return 0;
  if (IS("wrong_shape")) return ask(calls, payload, "OUTPUT0", 2, wrong, 8, 1), 0;
  if (IS("wrong_rank")) return ask(calls, payload, "OUTPUT0", 3, wrong_rank, 4, 1), 0;
  if (IS("negative_shape")) return ask(calls, payload, "OUTPUT0", 2, negative, 4, 1), 0;
  if (IS("huge_shape")) return ask(calls, payload, "OUTPUT0", 2, huge, UINT64_MAX - 3, 1), 0;
  if (IS("too_big")) return ask(calls, payload, "OUTPUT0", 2, shape, 8, 1), 0;
  if (IS("too_small")) return ask(calls, payload, "OUTPUT0", 2, shape, 3, 1), 0;
  if (IS("no_size")) return ask(calls, payload, "OUTPUT0", 2, shape, 0, 1), 0;
  if (IS("null_name")) {
    if (ask_output(calls.output, out, NULL, 2, shape, 4, &content)) return NO_OUTPUT;
    return next_block(calls.input, in, NULL, &block, &size) ? NO_INPUT : -1;
  }
  if (IS("null_pointers")) {
    if (ask_output(calls.output, out, "BATCH", 2, shape, 4, NULL)) return NO_OUTPUT;
    if (ask_output(calls.output, NULL, "BATCH", 2, shape, 4, &content)) return NO_OUTPUT;
    if (next_block(calls.input, in, "INPUT0", NULL, &size)) return NO_INPUT;
    if (next_block(calls.input, in, "INPUT0", &block, NULL)) return NO_INPUT;
    return next_block(calls.input, NULL, "INPUT0", &block, &size) ? NO_INPUT : -1;
  }
  if (IS("null_shape")) return ask(calls, payload, "OUTPUT0", 2, NULL, 4, 1), 0;
  if (IS("twice")) {
    ask(calls, payload, "BATCH", 2, shape, 4, 1);
    ask(calls, payload, "OUTPUT0", 2, shape, 4, 1);
    bool second = ask(calls, payload, "OUTPUT0", 2, shape, 4, 2);
    trace("twice %s", second ? "given" : "refused");
    return 0;
  }
  if (IS("write_to_input")) {
    if (!next_block(calls.input, in, "INPUT0", &block, &size) || block == NULL) return NO_INPUT;
    *(volatile int32_t*)(uintptr_t)block = 99;
    ask(calls, payload, "BATCH", 2, shape, 4, 1);
    return ask(calls, payload, "OUTPUT0", 2, shape, 4, 99), 0;
  }
  if (IS("leak")) {
    void* lost = malloc(1 << 20);
    if (lost != NULL) memset(lost, 1, 1 << 20);
    trace("leaked %s", lost == NULL ? "nothing" : "a mebibyte");
    return -1;
  }
  if (IS("finalize")) return CustomFinalize(context), -1;
  if (IS("hang")) return trace("hangs"), wait_for("hang"), -1;
  if (IS("sleep_forever")) {
    trace("sleeps");
    for (;;) pause();
  }
  if (IS("write_late")) {
    if (!ask_output(calls.output, out, "OUTPUT0", 2, shape, 4, &content) || content == NULL) return NO_OUTPUT;
    *(int32_t*)content = 1;
    ask(calls, payload, "BATCH", 2, shape, 4, 1);
    context->late_content = content;
    spawn(write_late, context);
    return 0;
  }
  if (IS("call_late")) {
    context->late_context = out;
    context->late_output = calls.output;
    context->late_input = calls.input;
    spawn(call_late, context);
    return -1;
  }
  if (IS("crash")) crash();
  if (IS("abort")) abort();
  if (IS("exit")) exit(3);
  if (IS("unresolved")) return undefined_function(), 0;
  if (IS("exit_with_message")) {
    fprintf(stderr, "faulty: message before exit\n");
    _exit(4);
  }
  if (IS("thread_dies")) {
    spawn(die, NULL);
    for (;;) pause();
  }
#undef IS
  return NO_INPUT;
}

static int serve(Context* context, uint32_t count, CustomPayload* payload, Calls calls, int* whole) {
  uint64_t size;
  uint8_t* bytes = whole_input(calls.input, payload->input_context, "COMMAND", 1u << 10, 1u << 10, &size, NULL);
  if (bytes == NULL || size < 4) {
    free(bytes);
    return NO_INPUT;
  }
  Bytes command = {bytes + 4, (size_t)size - 4};
  int code = run_command(context, command, payload, calls, whole);
  free(bytes);
  if (code != -1) return code;
  int64_t shape[2] = {1, 1};
  if (is_required(payload, "OUTPUT0")) {
    bytes = whole_input(calls.input, payload->input_context, "INPUT0", 4, 1u << 10, &size, NULL);
    int32_t value = 0;
    if (bytes != NULL && size == 4) memcpy(&value, bytes, 4);
    free(bytes);
    if (bytes == NULL || size != 4) return NO_INPUT;
    if (!ask(calls, payload, "OUTPUT0", 2, shape, 4, value + 1)) return NO_OUTPUT;
  }
  if (is_required(payload, "BATCH") && !ask(calls, payload, "BATCH", 2, shape, 4, (int)count)) return NO_OUTPUT;
  return 0;
}

static int library_run(void* opaque, uint32_t count, CustomPayload* payloads, CustomGetNextInput get_next_input,
                       CustomGetOutput get_output) {
  Context* context = opaque;
  Calls calls = {get_next_input, get_output};
  int whole = 0;
  for (uint32_t p = 0; p < count; p++) {
    payloads[p].error_code = serve(context, count, &payloads[p], calls, &whole);
  }
  return whole;
}
