/* Reads a serialized model configuration by iterating over its protobuf fields, without generated code. */
#ifndef CONFIG_H
#define CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct {
  const uint8_t* at;
  size_t size;
} Bytes;

typedef struct {
  uint32_t number;
  uint64_t value; /* of a number */
  Bytes bytes;    /* of anything else */
} Field;

static inline bool take_number(Bytes* from, uint64_t* value) {
  *value = 0;
  for (unsigned shift = 0; shift < 64 && from->size > 0; shift += 7) {
    uint8_t byte = *from->at++;
    from->size--;
    *value |= (uint64_t)(byte & 0x7f) << shift;
    if (byte < 0x80) return true;
  }
  return false;
}

/* Reads the next field; false at the end and for malformed data (then bytes are left, or `size` is wrong). */
static inline bool take_field(Bytes* message, Field* field) {
  uint64_t key, size;
  Bytes left = *message;
  memset(field, 0, sizeof *field);
  if (!take_number(&left, &key)) return false;
  field->number = (uint32_t)(key >> 3);
  switch (key & 7) {
    case 0:
      if (!take_number(&left, &field->value)) return false;
      *message = left;
      return true;
    case 1: size = 8; break;
    case 5: size = 4; break;
    case 2:
      if (!take_number(&left, &size)) return false;
      break;
    default: return false;
  }
  if (size > left.size) return false;
  field->bytes.at = left.at;
  field->bytes.size = (size_t)size;
  left.at += size;
  left.size -= (size_t)size;
  *message = left;
  return true;
}

/* The `nth` (from 0) field of this number. */
static inline bool find_field(Bytes message, uint32_t number, unsigned nth, Field* found) {
  while (take_field(&message, found)) {
    if (found->number == number && nth-- == 0) return true;
  }
  memset(found, 0, sizeof *found);
  return false;
}

static inline int64_t find_number(Bytes message, uint32_t number) {
  Field field;
  find_field(message, number, 0, &field);
  return (int64_t)field.value;
}

static inline Bytes find_bytes(Bytes message, uint32_t number, unsigned nth) {
  Field field;
  find_field(message, number, nth, &field);
  return field.bytes;
}

static inline bool is_text(Bytes bytes, const char* text) {
  return bytes.size == strlen(text) && (bytes.size == 0 || memcmp(bytes.at, text, bytes.size) == 0);
}

/* Field numbers of ModelConfig. */
enum {
  CONFIG_NAME = 1,
  CONFIG_PLATFORM = 2,
  CONFIG_MAX_BATCH_SIZE = 4,
  CONFIG_INPUT = 5,
  CONFIG_OUTPUT = 6,
  CONFIG_INSTANCE_GROUP = 7,
  CONFIG_TAGS = 10,
  CONFIG_SEQUENCE_BATCHING = 13,
  CONFIG_PARAMETERS = 14,
};

/* The value of an entry of `parameters`, or of `tags` for generations without parameters; empty if there is none. */
static inline Bytes find_setting(Bytes config, const char* key) {
  Field entry;
  for (unsigned i = 0; find_field(config, CONFIG_PARAMETERS, i, &entry); i++) {
    if (is_text(find_bytes(entry.bytes, 1, 0), key)) return find_bytes(find_bytes(entry.bytes, 2, 0), 1, 0);
  }
  for (unsigned i = 0; find_field(config, CONFIG_TAGS, i, &entry); i++) {
    if (is_text(find_bytes(entry.bytes, 1, 0), key)) return find_bytes(entry.bytes, 2, 0);
  }
  Bytes none = {NULL, 0};
  return none;
}

#endif
