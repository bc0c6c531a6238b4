/* Reports everything that its generation's interface provides, one `key=value` per line: in each row of REPORT
   (STRING [1]), or as the error of the payload when no output is requested.

   Inputs INT INT32 [-1] and FLOAT FP32 [2, -1], outputs REPORT and NUMBER (INT32 [1], the position in the batch). */
#include "generation.h"
#include "known_fields.h"

#include <pthread.h>

enum { NO_MEMORY = 1, REPORT_AS_ERROR, NO_OUTPUT };

typedef struct {
  char start[2048]; /* the report of initialize */
  char report[8192];
  size_t length;
  bool batches;
  long thread;
  unsigned executed;
} Context;

__attribute__((format(printf, 2, 3))) static void say(Context* context, const char* format, ...) {
  va_list arguments;
  va_start(arguments, format);
  size_t left = sizeof context->report - context->length;
  int more = vsnprintf(context->report + context->length, left, format, arguments);
  va_end(arguments);
  context->length += (size_t)more < left ? (size_t)more : left - 1;
}

static void say_bytes(Context* context, const char* key, Bytes bytes) {
  say(context, "%s=%.*s\n", key, (int)bytes.size, (const char*)bytes.at);
}

static int library_start(const Start* start, void** context) {
  Context* made = calloc(1, sizeof *made);
  if (made == NULL) return NO_MEMORY;
  *context = made;
  Bytes config = start->config;
  made->batches = find_number(config, CONFIG_MAX_BATCH_SIZE) > 0;
  made->thread = thread_id();
  say(made, "generation=" GENERATION "\ngpu=%d\n", start->gpu);
  say(made, "instance=%s\n", start->instance_name == NULL ? "none" : start->instance_name);
  say(made, "parameters=%zu\n", start->parameter_count);
  for (size_t i = 0; i < start->parameter_count; i++) say(made, "parameter%zu=%s\n", i, start->parameters[i]);
  char path[64] = "none";
#ifdef IS_V1_0
  bool v1_0 = true;
#else
  bool v1_0 = false;
#endif
  bool strange = find_stranger(config, CONFIG, v1_0, path, sizeof path);
  say(made, "stranger=%s\n", strange ? path : "none");
  say_bytes(made, "name", find_bytes(config, CONFIG_NAME, 0));
  say_bytes(made, "platform", find_bytes(config, CONFIG_PLATFORM, 0));
  say_bytes(made, "file", find_bytes(config, 8, 0));
  say_bytes(made, "tag", find_bytes(find_bytes(config, CONFIG_TAGS, 0), 2, 0));
  say_bytes(made, "input", find_bytes(find_bytes(config, CONFIG_INPUT, 1), 1, 0));
  Bytes group = find_bytes(config, CONFIG_INSTANCE_GROUP, 0);
  say_bytes(made, "group", find_bytes(group, 1, 0));
  say(made, "count=%d\nkind=%d\n", (int)find_number(group, 2), (int)find_number(group, 4));
  Bytes latest = find_bytes(find_bytes(config, 3, 0), 1, 0);
  say(made, "latest=%d\n", (int)find_number(latest, 1));
#ifdef IS_V1_0
  Field parameter;
  unsigned parameters = 0;
  while (find_field(config, CONFIG_PARAMETERS, parameters, &parameter)) parameters++;
  say(made, "settings=%u\n", parameters);
  say_bytes(made, "setting", find_bytes(find_bytes(find_bytes(config, CONFIG_PARAMETERS, 0), 2, 0), 1, 0));
#endif
  memcpy(made->start, made->report, made->length < sizeof made->start ? made->length : sizeof made->start - 1);
  return 0;
}

static int library_finish(void* context) {
  free(context);
  return 0;
}

static const char* library_explain(void* context, int error) {
  switch (error) {
    case NO_MEMORY: return "out of memory";
    case REPORT_AS_ERROR: return ((Context*)context)->report;
    case NO_OUTPUT: return "no memory for an output";
    default: return NULL;
  }
}

static void look_at_inputs(Context* context, CustomPayload* payload, CustomGetNextInput get) {
  void* input = payload->input_context;
#ifndef GENERATION_A
  say(context, "inputs=");
  for (uint32_t i = 0; i < payload->input_cnt; i++) {
    say(context, "%s%s[", i > 0 ? " " : "", payload->input_names[i]);
    for (size_t d = 0; d < payload->input_shape_dim_cnts[i]; d++) {
      say(context, "%s%lld", d > 0 ? "," : "", (long long)payload->input_shape_dims[i][d]);
    }
    say(context, "]");
  }
  say(context, "\n");
#endif
  const void* content = context;
  uint64_t size = 8;
  say(context, "unknown=%s\n", next_block(get, input, "UNKNOWN", &content, &size) ? "true" : "false");
  content = context, size = 0;
  bool given = next_block(get, input, "INT", &content, &size);
  say(context, "hint0=%s\n", !given ? "false" : content == NULL ? "end" : "data");
  bool taken = given && content != NULL;
  uint64_t total = 0;
  if (taken) {
    total = size;
  } else {
    free(whole_input(get, input, "INT", 1u << 20, 1u << 20, &total, NULL));
  }
  say(context, "int=%llu\n", (unsigned long long)total);
  free(whole_input(get, input, "FLOAT", 1u << 20, 1u << 20, &total, NULL));
  say(context, "float=%llu\n", (unsigned long long)total);
  content = context, size = 4;
  given = next_block(get, input, "FLOAT", &content, &size);
  say(context, "after=%s %llu\n", !given ? "false" : content == NULL ? "end" : "data", (unsigned long long)size);
}

static void look_at_outputs(Context* context, CustomPayload* payload, CustomGetOutput get) {
  say(context, "outputs=");
  for (uint32_t i = 0; i < payload->output_cnt; i++) {
    say(context, "%s%s", i > 0 ? " " : "", payload->required_output_names[i]);
  }
  say(context, "\nno_names=%d\n", payload->required_output_names == NULL);
  if (is_required(payload, "NUMBER")) return;
  int64_t shape[2] = {payload->batch_size, 1};
  bool batches = context->batches;
  void* content = context;
  bool given = ask_output(get, payload->output_context, "NUMBER", batches ? 2 : 1, batches ? shape : shape + 1,
                          4 * payload->batch_size, &content);
  say(context, "unasked=%s\n", !given ? "false" : content == NULL ? "no memory" : "memory");
}

/* The report of one payload. */
static void look(Context* context, uint32_t count, uint32_t place, CustomPayload* payload, CustomGetNextInput get_input,
                 CustomGetOutput get_output) {
  context->length = 0;
  say(context, "%s", context->start);
  char name[16] = "";
  pthread_getname_np(pthread_self(), name, sizeof name);
  say(context, "thread=%s %s\n", thread_id() == context->thread ? "same" : "another", name);
  say(context, "executed=%u\npayloads=%u\nplace=%u\nbatch=%u\n", context->executed, count, place, payload->batch_size);
  say(context, "error_code=%d\n", payload->error_code);
#ifndef GENERATION_A
  say(context, "contexts=%s\n", payload->input_context == payload->output_context ? "same" : "different");
#endif
  look_at_inputs(context, payload, get_input);
  look_at_outputs(context, payload, get_output);
}

static int respond(Context* context, uint32_t place, CustomPayload* payload, CustomGetOutput get_output) {
  const bool batches = context->batches;
  const uint32_t rows = payload->batch_size;
  int64_t shape[2] = {rows, 1};
  for (uint32_t o = 0; o < payload->output_cnt; o++) {
    const char* name = payload->required_output_names[o];
    bool is_report = strcmp(name, "REPORT") == 0;
    uint32_t length = (uint32_t)context->length;
    uint64_t row = is_report ? 4 + length : 4;
    void* content = NULL;
    if (!ask_output(get_output, payload->output_context, name, batches ? 2 : 1, batches ? shape : shape + 1,
                    rows * row, &content) || content == NULL) {
      return NO_OUTPUT;
    }
    for (uint32_t r = 0; r < rows; r++) {
      uint8_t* at = (uint8_t*)content + r * row;
      memcpy(at, is_report ? &length : &place, 4);
      if (is_report) memcpy(at + 4, context->report, length);
    }
  }
  return 0;
}

static int library_run(void* opaque, uint32_t count, CustomPayload* payloads, CustomGetNextInput get_next_input,
                       CustomGetOutput get_output) {
  Context* context = opaque;
  context->executed++;
  for (uint32_t p = 0; p < count; p++) {
    look(context, count, p, &payloads[p], get_next_input, get_output);
    payloads[p].error_code =
        payloads[p].output_cnt == 0 ? REPORT_AS_ERROR : respond(context, p, &payloads[p], get_output);
  }
  return 0;
}
