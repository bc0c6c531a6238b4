// SPDX-License-Identifier: Apache-2.0
// Stands for the library of a framework, so that the project runs as it is: replace it by yours. A
// model is a line for each column, "toy" and its weight; a score is the weighted sum of a row.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
  size_t columns;
  float weights[1024];
} toy_model;

const char *toy_version(void) { return "1.0"; }

// 0, or another number with the reason in `why`.
int toy_load(const char *path, toy_model **result, char *why, size_t size) {
  FILE *file = fopen(path, "r");
  if (!file) return snprintf(why, size, "%s", strerror(errno)), 1;
  toy_model *model = calloc(1, sizeof *model);
  char line[64], end;
  while (model && fgets(line, sizeof line, file)) {
    if (model->columns == sizeof model->weights / sizeof *model->weights) {
      snprintf(why, size, "more than %zu columns", model->columns);
    } else if (sscanf(line, "toy %f %c", &model->weights[model->columns], &end) != 1) {
      snprintf(why, size, "line %zu: expected \"toy\" and a number", model->columns + 1);
    } else {
      model->columns++;
      continue;
    }
    free(model), fclose(file);
    return 1;
  }
  fclose(file);
  if (!model || !model->columns) return snprintf(why, size, "no columns"), free(model), 1;
  *result = model;
  return 0;
}

size_t toy_columns(const toy_model *model) { return model->columns; }

int toy_run(const toy_model *model, const float *rows, size_t count, float *scores) {
  for (size_t row = 0; row < count; row++) {
    scores[row] = 0;
    for (size_t at = 0; at < model->columns; at++) scores[row] += model->weights[at] * rows[row * model->columns + at];
  }
  return 0;
}

void toy_free(toy_model *model) { free(model); }
