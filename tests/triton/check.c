/* Assertions of the probe backend; see check.h. */

#include "check.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>

Error *failed(const char *file, int line, const char *format, ...)
{
  char text[1024];
  const char *slash = strrchr(file, '/');
  int used = snprintf(text, sizeof text, "%s:%d: ", slash == NULL ? file : slash + 1, line);
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(text + used, sizeof text - (size_t)used, format, arguments);
  va_end(arguments);
  return TRITONSERVER_ErrorNew(CODE_INTERNAL, text);
}

Error *succeeds(const char *file, int line, const char *call, Error *error)
{
  if (error == NULL) return NULL;
  Error *failure = failed(
      file, line, "%s: expected success, found %s: %s", call, TRITONSERVER_ErrorCodeString(error),
      TRITONSERVER_ErrorMessage(error));
  TRITONSERVER_ErrorDelete(error);
  return failure;
}

Error *refuses(const char *file, int line, const char *call, int code, Error *error)
{
  if (error == NULL) return failed(file, line, "%s: expected an error, found success", call);
  int found = TRITONSERVER_ErrorCode(error);
  const char *message = TRITONSERVER_ErrorMessage(error);
  Error *failure = NULL;
  if (code != ANY && found != code) {
    failure = failed(file, line, "%s: expected an error of code %d, found %d (%s)", call, code, found, message);
  } else if (message == NULL || *message == '\0') {
    failure = failed(file, line, "%s: expected a message in the error", call);
  }
  TRITONSERVER_ErrorDelete(error);
  return failure;
}

Error *misuse(const char *file, int line, const char *call, Error *error)
{
  char function[128];
  snprintf(function, sizeof function, "%.*s", (int)strcspn(call, "("), call);
  if (error == NULL) return failed(file, line, "%s: expected an error, found success", call);
  const char *message = TRITONSERVER_ErrorMessage(error);
  Error *failure = NULL;
  if (message == NULL || strstr(message, function) == NULL) {
    failure = failed(file, line, "%s: expected the name of the function in the error, found: %s", call, message);
  }
  TRITONSERVER_ErrorDelete(error);
  return failure;
}

Error *has_json(const char *function, TRITONSERVER_Message *message, const char *text)
{
  const char *base = UNSET;
  size_t bytes = 0;
  MUST(TRITONSERVER_MessageSerializeToJson(message, &base, &bytes));
  if (base == NULL || strlen(base) != bytes) {
    return failed(__FILE__, __LINE__, "%s: expected JSON that ends with NUL after %zu bytes", function, bytes);
  }
  if (strstr(base, text) == NULL) {
    return failed(__FILE__, __LINE__, "%s: expected %s in %s", function, text, base);
  }
  return NULL;
}

Error *parameter_of(TRITONBACKEND_Model *model, const char *key, char *value, size_t size)
{
  char pattern[96];
  snprintf(pattern, sizeof pattern, "\"%s\":{\"string_value\":\"", key);
  TRITONSERVER_Message *config = NULL;
  const char *json = NULL;
  size_t bytes = 0;
  MUST(TRITONBACKEND_ModelConfig(model, 1, &config));
  MUST(TRITONSERVER_MessageSerializeToJson(config, &json, &bytes));
  const char *found = strstr(json, pattern);
  *value = '\0';
  if (found != NULL) {
    found += strlen(pattern);
    snprintf(value, size, "%.*s", (int)strcspn(found, "\""), found);
  }
  MUST(TRITONSERVER_MessageDelete(config));
  return NULL;
}

uint64_t now(void)
{
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (uint64_t)time.tv_sec * 1000000000u + (uint64_t)time.tv_nsec;
}

Error *put_output(
    TRITONBACKEND_Response *response, const char *name, int type, const int64_t *shape, uint32_t dims, const void *data,
    uint64_t bytes)
{
  TRITONBACKEND_Output *output = NULL;
  void *buffer = NULL;
  int kind = MEMORY_CPU;
  int64_t id = 0;
  MUST(TRITONBACKEND_ResponseOutput(response, &output, name, type, shape, dims));
  MUST(TRITONBACKEND_OutputBuffer(output, &buffer, bytes, &kind, &id));
  EXPECT(TRITONBACKEND_OutputBuffer, kind == MEMORY_CPU);
  if (bytes != 0) {
    EXPECT(TRITONBACKEND_OutputBuffer, buffer != NULL);
    memcpy(buffer, data, bytes);
  }
  return NULL;
}

Error *read_input(TRITONBACKEND_Request *request, const char *name, const void **data, uint64_t *bytes)
{
  TRITONBACKEND_Input *input = NULL;
  int kind = MEMORY_CPU;
  int64_t id = 0;
  MUST(TRITONBACKEND_RequestInput(request, name, &input));
  MUST(TRITONBACKEND_InputBuffer(input, 0, data, bytes, &kind, &id));
  EXPECT(TRITONBACKEND_InputBuffer, kind == MEMORY_CPU && id == 0);
  return NULL;
}

Error *echo(TRITONBACKEND_Request *request, uint32_t flags)
{
  const void *data = NULL;
  uint64_t bytes = 0;
  TRITONBACKEND_Input *input = NULL;
  const int64_t *shape = NULL;
  uint32_t dims = 0;
  TRITONBACKEND_Response *response = NULL;
  TRY(read_input(request, "INPUT0", &data, &bytes));
  MUST(TRITONBACKEND_RequestInput(request, "INPUT0", &input));
  MUST(TRITONBACKEND_InputProperties(input, NULL, NULL, &shape, &dims, NULL, NULL));
  MUST(TRITONBACKEND_ResponseNew(&response, request));
  TRY(put_output(response, "OUTPUT0", TYPE_INT32, shape, dims, data, bytes));
  MUST(TRITONBACKEND_ResponseSend(response, flags, NULL));
  return NULL;
}
