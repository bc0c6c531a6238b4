/* Checks of the test programs of the C interface. */
#ifndef TRTSERVER_TESTS_CHECK_CALLS_H
#define TRTSERVER_TESTS_CHECK_CALLS_H

#include "check.h"
#include "trtserver_client.h"

/* The call of the C interface succeeds. */
#define OK(call)                                                                                 \
  do {                                                                                           \
    trtc_error *error_ = (call);                                                                 \
    if (error_ != NULL) {                                                                        \
      fprintf(stderr, "%s:%d: %s: %s\n", __FILE__, __LINE__, #call, trtc_error_message(error_)); \
      exit(1);                                                                                   \
    }                                                                                            \
  } while (0)

#endif
