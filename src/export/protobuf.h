/* Messages of protocol buffers, written by hand: an ONNX file needs a dozen kinds of fields. */
#ifndef DV_PROTOBUF_H
#define DV_PROTOBUF_H

#include "export/text.h"

#include <string.h>

static inline void dv_pb_varint(dv_text *t, uint64_t n) {
  for (; n > 127; n >>= 7) {
    char byte = (char)((n & 127) | 128);
    dv_text_append(t, &byte, 1);
  }
  char last = (char)n;
  dv_text_append(t, &last, 1);
}

/* Field `number` that holds a whole number. */
static inline void dv_pb_int(dv_text *t, int number, int64_t value) {
  dv_pb_varint(t, (uint64_t)number << 3);
  dv_pb_varint(t, (uint64_t)value);
}

/* Field `number` that holds bytes: a text, a message, or packed numbers. */
static inline void dv_pb_bytes(dv_text *t, int number, const void *bytes, size_t size) {
  dv_pb_varint(t, (uint64_t)number << 3 | 2);
  dv_pb_varint(t, size);
  if (size) dv_text_append(t, bytes, size);
}

static inline void dv_pb_text(dv_text *t, int number, const char *text) {
  dv_pb_bytes(t, number, text, strlen(text));
}

/* Adds a message as a field, and frees it. */
static inline void dv_pb_message(dv_text *t, int number, dv_text *message) {
  dv_pb_bytes(t, number, message->at, message->used);
  t->failed |= message->failed;
  dv_text_free(message);
}

#endif
