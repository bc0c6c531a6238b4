/* Which fields of a configuration each generation knows. Libraries must not get any others: they may
   have been built with a strict parser, and new fields change the meaning of old ones. */
#ifndef KNOWN_FIELDS_H
#define KNOWN_FIELDS_H

#include "config.h"

enum { LEAF, CONFIG, POLICY, LATEST, ALL, SPECIFIC, INPUT, OUTPUT, RESHAPE, GROUP, ENTRY, DYNAMIC, QUEUE, QUEUES,
       OPTIMIZATION, GRAPH, CUDA, ACCELERATORS, ACCELERATOR, PINNED, SEQUENCE, CONTROL_INPUT, CONTROL, DIRECT, OLDEST,
       PARAMETERS, PARAMETER, ENSEMBLE, STEP, WARMUP, WARMUP_INPUTS, WARMUP_INPUT };

typedef struct {
  uint8_t message, first, last, content, since_v1_0;
} Known;

/* Generation A, v0.10, has no sequences either. */
static const Known KNOWN[] = {
    {CONFIG, 1, 2, LEAF, 0},         {CONFIG, 3, 3, POLICY, 0},       {CONFIG, 4, 4, LEAF, 0},
    {CONFIG, 5, 5, INPUT, 0},        {CONFIG, 6, 6, OUTPUT, 0},       {CONFIG, 7, 7, GROUP, 0},
    {CONFIG, 8, 8, LEAF, 0},         {CONFIG, 9, 10, ENTRY, 0},       {CONFIG, 11, 11, DYNAMIC, 0},
    {CONFIG, 12, 12, OPTIMIZATION, 0},
#ifndef GENERATION_A
    {CONFIG, 13, 13, SEQUENCE, 0},
#endif
    {CONFIG, 14, 14, PARAMETERS, 1},
    {CONFIG, 15, 15, ENSEMBLE, 1},   {CONFIG, 16, 16, WARMUP, 1},     {POLICY, 1, 1, LATEST, 0},
    {POLICY, 2, 2, ALL, 0},          {POLICY, 3, 3, SPECIFIC, 0},     {LATEST, 1, 1, LEAF, 0},
    {SPECIFIC, 1, 1, LEAF, 0},       {INPUT, 1, 4, LEAF, 0},          {INPUT, 5, 5, RESHAPE, 1},
    {INPUT, 6, 7, LEAF, 1},          {OUTPUT, 1, 4, LEAF, 0},         {OUTPUT, 5, 5, RESHAPE, 1},
    {OUTPUT, 6, 6, LEAF, 1},         {RESHAPE, 1, 1, LEAF, 1},        {GROUP, 1, 4, LEAF, 0},
    {GROUP, 5, 5, LEAF, 1},          {ENTRY, 1, 2, LEAF, 0},          {DYNAMIC, 1, 2, LEAF, 0},
    {DYNAMIC, 3, 5, LEAF, 1},        {DYNAMIC, 6, 6, QUEUE, 1},       {DYNAMIC, 7, 7, QUEUES, 1},
    {QUEUE, 1, 4, LEAF, 1},          {QUEUES, 1, 1, LEAF, 1},         {QUEUES, 2, 2, QUEUE, 1},
    {OPTIMIZATION, 1, 1, GRAPH, 0},  {OPTIMIZATION, 2, 2, LEAF, 0},   {OPTIMIZATION, 3, 3, CUDA, 1},
    {OPTIMIZATION, 4, 4, ACCELERATORS, 1}, {OPTIMIZATION, 5, 6, PINNED, 1}, {GRAPH, 1, 1, LEAF, 0},
    {CUDA, 1, 1, LEAF, 1},           {ACCELERATORS, 1, 2, ACCELERATOR, 1}, {ACCELERATOR, 1, 1, LEAF, 1},
    {ACCELERATOR, 2, 2, ENTRY, 1},   {PINNED, 1, 1, LEAF, 1},         {SEQUENCE, 1, 1, LEAF, 0},
    {SEQUENCE, 2, 2, CONTROL_INPUT, 0}, {SEQUENCE, 3, 3, DIRECT, 1},  {SEQUENCE, 4, 4, OLDEST, 1},
    {CONTROL_INPUT, 1, 1, LEAF, 0},  {CONTROL_INPUT, 2, 2, CONTROL, 0}, {CONTROL, 1, 2, LEAF, 0},
    {CONTROL, 3, 4, LEAF, 1},        {OLDEST, 1, 3, LEAF, 1},         {PARAMETERS, 1, 1, LEAF, 1},
    {PARAMETERS, 2, 2, PARAMETER, 1}, {PARAMETER, 1, 1, LEAF, 1},     {ENSEMBLE, 1, 1, STEP, 1},
    {STEP, 1, 2, LEAF, 1},           {STEP, 3, 4, ENTRY, 1},          {WARMUP, 1, 2, LEAF, 1},
    {WARMUP, 3, 3, WARMUP_INPUTS, 1}, {WARMUP_INPUTS, 1, 1, LEAF, 1}, {WARMUP_INPUTS, 2, 2, WARMUP_INPUT, 1},
    {WARMUP_INPUT, 1, 5, LEAF, 1},
};

/* Writes the path of the first unknown field, such as "7.12"; false if all fields are known. */
static inline bool find_stranger(Bytes message, uint8_t kind, bool v1_0, char* path, size_t size) {
  Field field;
  while (take_field(&message, &field)) {
    const Known* known = NULL;
    for (size_t i = 0; i < sizeof KNOWN / sizeof *KNOWN; i++) {
      const Known* at = &KNOWN[i];
      if (at->message != kind || field.number < at->first || field.number > at->last) continue;
      if (at->since_v1_0 && !v1_0) continue;
      known = at;
    }
    int length = snprintf(path, size, known == NULL ? "%u" : "%u.", field.number);
    if (known == NULL) return true;
    if (known->content == LEAF) continue;
    if (find_stranger(field.bytes, known->content, v1_0, path + length, size - (size_t)length)) return true;
  }
  if (message.size > 0) {
    snprintf(path, size, "unreadable");
    return true;
  }
  return false;
}

#endif
