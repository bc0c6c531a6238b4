/* Checks of the test programs: the first that fails ends the program with its place. */
#ifndef TRTSERVER_TESTS_CHECK_H
#define TRTSERVER_TESTS_CHECK_H

#include <stdio.h>
#include <stdlib.h>

#define CHECK(condition)                                                          \
  do {                                                                            \
    if (!(condition)) {                                                           \
      fprintf(stderr, "%s:%d: %s is false\n", __FILE__, __LINE__, #condition);    \
      exit(1);                                                                    \
    }                                                                             \
  } while (0)

#endif
