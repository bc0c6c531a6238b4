/* Checks of what needs no model: errors, texts, messages, buffer attributes, parameters, log, metrics. */

#include "checks.h"

#include <math.h>
#include <stdio.h>

static Error *errors(void)
{
  static const char *const NAMES[] = {"Unknown",     "Internal",    "Not found",      "Invalid argument",
                                      "Unavailable", "Unsupported", "Already exists"};
  for (int code = CODE_UNKNOWN; code <= CODE_CANCELLED; code++) {
    char text[] = "as given";
    Error *error = TRITONSERVER_ErrorNew(code, text);
    EXPECT(TRITONSERVER_ErrorNew, error != NULL);
    /* The message is a copy. */
    text[0] = 'X';
    EXPECT(TRITONSERVER_ErrorCode, TRITONSERVER_ErrorCode(error) == code);
    /* Triton 2.51 has no text for the code of cancellation. */
    const char *text_of_code = TRITONSERVER_ErrorCodeString(error);
    EXPECT(TRITONSERVER_ErrorCodeString, text_of_code != NULL);
    if (code != CODE_CANCELLED) EXPECT_TEXT(TRITONSERVER_ErrorCodeString, text_of_code, NAMES[code]);
    EXPECT_TEXT(TRITONSERVER_ErrorMessage, TRITONSERVER_ErrorMessage(error), "as given");
    TRITONSERVER_ErrorDelete(error);
  }
  return NULL;
}

static Error *texts(void)
{
  static const struct {
    const char *name;
    uint32_t bytes;
  } TYPES[] = {{"<invalid>", 0}, {"BOOL", 1},  {"UINT8", 1}, {"UINT16", 2}, {"UINT32", 4},
               {"UINT64", 8},    {"INT8", 1},  {"INT16", 2}, {"INT32", 4},  {"INT64", 8},
               {"FP16", 2},      {"FP32", 4},  {"FP64", 8},  {"BYTES", 0},  {"BF16", 2}};
  for (int type = TYPE_INVALID; type <= TYPE_BF16; type++) {
    EXPECT_TEXT(TRITONSERVER_DataTypeString, TRITONSERVER_DataTypeString(type), TYPES[type].name);
    EXPECT(TRITONSERVER_DataTypeByteSize, TRITONSERVER_DataTypeByteSize(type) == TYPES[type].bytes);
    if (type != TYPE_INVALID) {
      EXPECT(TRITONSERVER_StringToDataType, TRITONSERVER_StringToDataType(TYPES[type].name) == type);
    }
  }
  EXPECT(TRITONSERVER_StringToDataType, TRITONSERVER_StringToDataType("FP31") == TYPE_INVALID);
  EXPECT(TRITONSERVER_StringToDataType, TRITONSERVER_StringToDataType("") == TYPE_INVALID);
  static const char *const MEMORY[] = {"CPU", "CPU_PINNED", "GPU"};
  for (int kind = MEMORY_CPU; kind <= MEMORY_GPU; kind++) {
    EXPECT_TEXT(TRITONSERVER_MemoryTypeString, TRITONSERVER_MemoryTypeString(kind), MEMORY[kind]);
  }
  static const char *const KINDS[] = {"AUTO", "CPU", "GPU", "MODEL"};
  for (int kind = KIND_AUTO; kind <= KIND_MODEL; kind++) {
    EXPECT_TEXT(TRITONSERVER_InstanceGroupKindString, TRITONSERVER_InstanceGroupKindString(kind), KINDS[kind]);
  }
  return NULL;
}

static Error *versions(void)
{
  uint32_t major = 99, minor = 99;
  MUST(TRITONSERVER_ApiVersion(&major, &minor));
  EXPECT(TRITONSERVER_ApiVersion, major == 1 && minor >= 34);
  MUST(TRITONREPOAGENT_ApiVersion(&major, &minor));
  EXPECT(TRITONREPOAGENT_ApiVersion, major == 0 && minor == 1);
  MUST(TRITONCACHE_ApiVersion(&major, &minor));
  if (major != 0 || minor != 1) {
    return failed(__FILE__, __LINE__, "TRITONCACHE_ApiVersion: expected 0.1, found %u.%u", major, minor);
  }
  EXPECT_TEXT(TRITONSERVER_ParameterTypeString, TRITONSERVER_ParameterTypeString(PARAMETER_INT), "INT");
  EXPECT_TEXT(TRITONSERVER_InferenceTraceLevelString, TRITONSERVER_InferenceTraceLevelString(4), "TIMESTAMPS");
  EXPECT_TEXT(
      TRITONSERVER_InferenceTraceActivityString, TRITONSERVER_InferenceTraceActivityString(0), "REQUEST_START");
  return NULL;
}

static Error *messages(void)
{
  static const char TEXT[] = "{\"a\":[1,2.5,\"x\"],\"b\":{\"c\":18446744073709551615}} and bytes beyond the message";
  size_t length = strlen("{\"a\":[1,2.5,\"x\"],\"b\":{\"c\":18446744073709551615}}");
  TRITONSERVER_Message *message = NULL;
  MUST(TRITONSERVER_MessageNewFromSerializedJson(&message, TEXT, length));
  TRY(has_json("TRITONSERVER_MessageNewFromSerializedJson", message, "18446744073709551615"));
  TRY(has_json("TRITONSERVER_MessageNewFromSerializedJson", message, "\"a\":[1,2.5,\"x\"]"));
  /* Serialised twice, the text is the same. */
  const char *first = NULL, *second = NULL;
  size_t n = 0, m = 0;
  MUST(TRITONSERVER_MessageSerializeToJson(message, &first, &n));
  MUST(TRITONSERVER_MessageSerializeToJson(message, &second, &m));
  EXPECT(TRITONSERVER_MessageSerializeToJson, n == m && memcmp(first, second, n) == 0);
  MUST(TRITONSERVER_MessageDelete(message));
  return NULL;
}

static Error *attributes(void)
{
  TRITONSERVER_BufferAttributes *attributes = NULL;
  size_t bytes = 1;
  int kind = 99;
  int64_t id = 99;
  void *handle = UNSET;
  char ipc[64] = "handle";
  MUST(TRITONSERVER_BufferAttributesNew(&attributes));
  EXPECT(TRITONSERVER_BufferAttributesNew, attributes != NULL);
  MUST(TRITONSERVER_BufferAttributesCudaIpcHandle(attributes, &handle));
  EXPECT(TRITONSERVER_BufferAttributesCudaIpcHandle, handle == NULL);
  MUST(TRITONSERVER_BufferAttributesSetByteSize(attributes, 4096));
  MUST(TRITONSERVER_BufferAttributesSetMemoryType(attributes, MEMORY_GPU));
  MUST(TRITONSERVER_BufferAttributesSetMemoryTypeId(attributes, 3));
  MUST(TRITONSERVER_BufferAttributesSetCudaIpcHandle(attributes, ipc));
  MUST(TRITONSERVER_BufferAttributesByteSize(attributes, &bytes));
  MUST(TRITONSERVER_BufferAttributesMemoryType(attributes, &kind));
  MUST(TRITONSERVER_BufferAttributesMemoryTypeId(attributes, &id));
  MUST(TRITONSERVER_BufferAttributesCudaIpcHandle(attributes, &handle));
  EXPECT(TRITONSERVER_BufferAttributesByteSize, bytes == 4096);
  EXPECT(TRITONSERVER_BufferAttributesMemoryType, kind == MEMORY_GPU);
  EXPECT(TRITONSERVER_BufferAttributesMemoryTypeId, id == 3);
  EXPECT(TRITONSERVER_BufferAttributesCudaIpcHandle, handle != NULL && memcmp(handle, ipc, sizeof ipc) == 0);
  MUST(TRITONSERVER_BufferAttributesDelete(attributes));
  return NULL;
}

static Error *parameters(void)
{
  int64_t integer = -7;
  bool truth = true;
  double real = 2.5;
  TRITONSERVER_Parameter *made[] = {
      TRITONSERVER_ParameterNew("s", PARAMETER_STRING, "text"), TRITONSERVER_ParameterNew("i", PARAMETER_INT, &integer),
      TRITONSERVER_ParameterNew("b", PARAMETER_BOOL, &truth), TRITONSERVER_ParameterNew("d", PARAMETER_DOUBLE, &real),
      TRITONSERVER_ParameterBytesNew("raw", "\0\1\2", 3)};
  for (size_t i = 0; i < sizeof made / sizeof *made; i++) {
    EXPECT(TRITONSERVER_ParameterNew, made[i] != NULL);
    TRITONSERVER_ParameterDelete(made[i]);
  }
  /* Bytes have a function of their own. */
  EXPECT(TRITONSERVER_ParameterNew, TRITONSERVER_ParameterNew("raw", PARAMETER_BYTES, "x") == NULL);
  return NULL;
}

static Error *log_lines(void)
{
  EXPECT(TRITONSERVER_LogIsEnabled, TRITONSERVER_LogIsEnabled(LOG_ERROR));
  EXPECT(TRITONSERVER_LogIsEnabled, TRITONSERVER_LogIsEnabled(LOG_WARN));
  EXPECT(TRITONSERVER_LogIsEnabled, TRITONSERVER_LogIsEnabled(LOG_INFO));
  MUST(TRITONSERVER_LogMessage(LOG_INFO, __FILE__, __LINE__, "contract: a line of level info"));
  MUST(TRITONSERVER_LogMessage(LOG_WARN, __FILE__, __LINE__, "contract: a line of level warn"));
  MUST(TRITONSERVER_LogMessage(LOG_ERROR, __FILE__, __LINE__, "contract: a line of level error"));
  MUST(TRITONSERVER_LogMessage(LOG_VERBOSE, __FILE__, __LINE__, "contract: a line of level verbose"));
  return NULL;
}

static Error *metric_family(int kind, const char *name, TRITONSERVER_MetricFamily **family)
{
  int found = 99;
  MUST(TRITONSERVER_MetricFamilyNew(family, kind, name, "A metric of the probe."));
  MUST(TRITONSERVER_GetMetricFamilyKind(*family, &found));
  EXPECT(TRITONSERVER_GetMetricFamilyKind, found == kind);
  return NULL;
}

static Error *metrics(void)
{
  TRITONSERVER_MetricFamily *counters = NULL, *gauges = NULL, *same = NULL, *histograms = NULL;
  TRITONSERVER_Metric *counter = NULL, *gauge = NULL, *histogram = NULL;
  TRITONSERVER_MetricArgs *args = NULL;
  double value = -1;
  int kind = 99;
  TRITONSERVER_Parameter *label = TRITONSERVER_ParameterNew("source", PARAMETER_STRING, "probe");
  const TRITONSERVER_Parameter *labels[] = {label};
  TRY(metric_family(METRIC_COUNTER, "contract_counter", &counters));
  TRY(metric_family(METRIC_GAUGE, "contract_gauge", &gauges));
  /* One name twice is one family. */
  TRY(metric_family(METRIC_COUNTER, "contract_counter", &same));

  MUST(TRITONSERVER_MetricNew(&counter, counters, labels, 1));
  MUST(TRITONSERVER_MetricNewWithArgs(&gauge, gauges, labels, 1, NULL));
  MUST(TRITONSERVER_GetMetricKind(gauge, &kind));
  EXPECT(TRITONSERVER_GetMetricKind, kind == METRIC_GAUGE);
  TRITONSERVER_ParameterDelete(label);
  MUST(TRITONSERVER_MetricIncrement(counter, 2.5));
  MUST(TRITONSERVER_MetricValue(counter, &value));
  EXPECT(TRITONSERVER_MetricValue, fabs(value - 2.5) < 1e-9);
  REFUSES(ANY, TRITONSERVER_MetricIncrement(counter, -1));
  REFUSES(ANY, TRITONSERVER_MetricSet(counter, 1));
  REFUSES(ANY, TRITONSERVER_MetricObserve(counter, 1));
  MUST(TRITONSERVER_MetricSet(gauge, 7));
  MUST(TRITONSERVER_MetricIncrement(gauge, -3));
  MUST(TRITONSERVER_MetricValue(gauge, &value));
  EXPECT(TRITONSERVER_MetricValue, fabs(value - 4) < 1e-9);

  static const double BUCKETS[] = {0.1, 1, 10};
  TRY(metric_family(METRIC_HISTOGRAM, "contract_histogram", &histograms));
  MUST(TRITONSERVER_MetricArgsNew(&args));
  MUST(TRITONSERVER_MetricArgsSetHistogram(args, BUCKETS, 3));
  MUST(TRITONSERVER_MetricNewWithArgs(&histogram, histograms, NULL, 0, args));
  MUST(TRITONSERVER_MetricArgsDelete(args));
  MUST(TRITONSERVER_MetricArgsDelete(NULL));
  MUST(TRITONSERVER_MetricObserve(histogram, 0.5));
  MUST(TRITONSERVER_MetricObserve(histogram, 50));
  REFUSES(ANY, TRITONSERVER_MetricValue(histogram, &value));

  /* A family goes after its metrics. */
  REFUSES(ANY, TRITONSERVER_MetricFamilyDelete(histograms));
  MUST(TRITONSERVER_MetricDelete(histogram));
  MUST(TRITONSERVER_MetricFamilyDelete(histograms));
  MUST(TRITONSERVER_MetricFamilyDelete(same));
  /* The counter and the gauge stay for the page of metrics. */
  return NULL;
}

Error *check_values(void)
{
  TRY(errors());
  TRY(texts());
  TRY(versions());
  TRY(messages());
  TRY(attributes());
  TRY(parameters());
  TRY(log_lines());
  TRY(metrics());
  return NULL;
}
