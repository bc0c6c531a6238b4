/* Assertions of the probe backend. Each returns an error that names the call, what was expected and what was found; the entry point
 * hands it to the host, which reports it to the client or refuses the model. */

#ifndef TRITON_CHECK_H
#define TRITON_CHECK_H

#include "backend.h"
#include "server.h"

#include <string.h>

/* The call succeeds. */
#define MUST(call)                                          \
  do {                                                      \
    Error *failure_ = succeeds(__FILE__, __LINE__, #call, (call)); \
    if (failure_ != NULL) return failure_;                  \
  } while (0)

/* The call is refused with this code; ANY for any code. */
#define REFUSES(code, call)                                       \
  do {                                                            \
    Error *failure_ = refuses(__FILE__, __LINE__, #call, code, (call)); \
    if (failure_ != NULL) return failure_;                        \
  } while (0)

/* A misuse is refused, and the message has the function's name. */
#define MISUSE(call)                                           \
  do {                                                         \
    Error *failure_ = misuse(__FILE__, __LINE__, #call, (call)); \
    if (failure_ != NULL) return failure_;                     \
  } while (0)

#define EXPECT(function, condition)                                                         \
  do {                                                                                      \
    if (!(condition)) return failed(__FILE__, __LINE__, "%s: expected %s", #function, #condition); \
  } while (0)

#define EXPECT_TEXT(function, text, expected)                                                            \
  do {                                                                                                   \
    const char *text_ = (text);                                                                          \
    if (text_ == NULL || strcmp(text_, expected) != 0)                                                   \
      return failed(__FILE__, __LINE__, "%s: expected \"%s\", found \"%s\"", #function, expected, text_ == NULL ? "(null)" : text_); \
  } while (0)

#define TRY(call)                    \
  do {                               \
    Error *failure_ = (call);        \
    if (failure_ != NULL) return failure_; \
  } while (0)

#define ANY (-1)
/* Stands in an out parameter before a call that must set it. */
#define UNSET ((void *)0x5a5a)

Error *failed(const char *file, int line, const char *format, ...) __attribute__((format(printf, 3, 4)));
Error *succeeds(const char *file, int line, const char *call, Error *error);
Error *refuses(const char *file, int line, const char *call, int code, Error *error);
Error *misuse(const char *file, int line, const char *call, Error *error);

/* The JSON of a message has this text. */
Error *has_json(const char *function, TRITONSERVER_Message *message, const char *text);
/* The value of a string parameter of the model's configuration, in `value`; empty if there is none. */
Error *parameter_of(TRITONBACKEND_Model *model, const char *key, char *value, size_t size);
/* Nanoseconds on the clock of statistics. */
uint64_t now(void);

/* A response with OUTPUT0 = INPUT0 (INT32), sent with these flags. The request is kept. */
Error *echo(TRITONBACKEND_Request *request, uint32_t flags);
/* An output of one response, filled with these bytes. */
Error *put_output(
    TRITONBACKEND_Response *response, const char *name, int type, const int64_t *shape, uint32_t dims, const void *data,
    uint64_t bytes);
/* The only buffer of an input. */
Error *read_input(TRITONBACKEND_Request *request, const char *name, const void **data, uint64_t *bytes);

#endif
