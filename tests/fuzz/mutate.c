#include "mutate.h"

#include <stdlib.h>
#include <string.h>

/* ---- Parts ---- */

/* Changes bytes[from, from + length), and moves what follows. */
static size_t mutate_part(uint8_t *bytes, size_t size, size_t from, size_t *length, size_t most) {
  size_t room = *length + (most - size);
  uint8_t *part = malloc(room + 1);
  if (!part) return size;
  memcpy(part, bytes + from, *length);
  size_t now = LLVMFuzzerMutate(part, *length, room);
  memmove(bytes + from + now, bytes + from + *length, size - from - *length);
  memcpy(bytes + from, part, now);
  size = size - *length + now;
  *length = now;
  free(part);
  return size;
}

static uint64_t get(const uint8_t *from, int bytes) {
  uint64_t value = 0;
  for (int i = bytes; i-- > 0;) value = value << 8 | from[i];
  return value;
}

static void put(uint8_t *to, uint64_t value, int bytes) {
  for (int i = 0; i < bytes; i++) to[i] = (uint8_t)(value >> 8 * i);
}

/* ---- Texts ---- */

static size_t replace(uint8_t *bytes, size_t size, size_t most, size_t from, size_t length,
                      const char *text) {
  size_t now = strlen(text);
  if (size - length + now > most) return size;
  memmove(bytes + from + now, bytes + from + length, size - from - length);
  memcpy(bytes + from, text, now);
  return size - length + now;
}

/* The piece of text around `at`, between two of the characters that end one. */
static void find_piece(const uint8_t *bytes, size_t size, size_t at, const char *ends, size_t *from,
                       size_t *to) {
  for (*from = at; *from && !strchr(ends, bytes[*from - 1]);) --*from;
  for (*to = at; *to < size && bytes[*to] && !strchr(ends, bytes[*to]);) ++*to;
}

/* ---- NPY ---- */

size_t mutate_npy(uint8_t *bytes, size_t size, size_t most, unsigned seed) {
  if (size < 12 || memcmp(bytes, "\x93NUMPY", 6) != 0 || seed % 8 == 0)
    return LLVMFuzzerMutate(bytes, size, most);
  int width = bytes[6] == 1 ? 2 : 4;
  size_t at = 8 + (size_t)width;
  uint64_t said = get(bytes + 8, width);
  size_t length = said < size - at ? (size_t)said : size - at, rest = size - at - length;
  if (seed % 8 < 6) {
    size = mutate_part(bytes, size, at, &length, most);
    put(bytes + 8, width == 2 && length > 65535 ? 65535 : length, width);
    return size;
  }
  return mutate_part(bytes, size, at + length, &rest, most);
}

/* ---- NPZ ---- */

enum { MEMBERS = 16, LOCAL = 30, CENTRAL = 46, END = 22 };

typedef struct member {
  uint8_t *name, *content;
  size_t name_length, length;
  uint16_t method;
  uint32_t checksum, full; /* of the content before it was compressed */
} member;

static uint32_t checksum(const uint8_t *bytes, size_t size) {
  uint32_t crc = ~0u;
  for (size_t i = 0; i < size; i++) {
    crc ^= bytes[i];
    for (int k = 0; k < 8; k++) crc = crc >> 1 ^ (crc & 1 ? 0xedb88320u : 0);
  }
  return ~crc;
}

/* The members, as far as they can be found; they point into the bytes. */
static int list_members(uint8_t *bytes, size_t size, member *out) {
  int n = 0;
  for (size_t at = 0; n < MEMBERS && size - at >= LOCAL && !memcmp(bytes + at, "PK\3\4", 4);) {
    const uint8_t *h = bytes + at;
    member m = {.method = (uint16_t)get(h + 8, 2),
                .checksum = (uint32_t)get(h + 14, 4),
                .full = (uint32_t)get(h + 22, 4)};
    m.length = (size_t)get(h + 18, 4);
    m.name_length = (size_t)get(h + 26, 2);
    size_t more = (size_t)get(h + 28, 2);
    if (m.name_length + more > size - at - LOCAL || m.length > size - at - LOCAL - m.name_length - more)
      break;
    m.name = bytes + at + LOCAL;
    m.content = m.name + m.name_length + more;
    at += LOCAL + m.name_length + more + m.length;
    out[n++] = m;
  }
  return n;
}

static size_t put_central(uint8_t *to, const member *m, size_t local) {
  memset(to, 0, CENTRAL);
  memcpy(to, "PK\1\2\24\0\24\0", 8);
  put(to + 10, m->method, 2);
  put(to + 16, m->checksum, 4);
  put(to + 20, m->length, 4);
  put(to + 24, m->full, 4);
  put(to + 28, m->name_length, 2);
  put(to + 42, local, 4);
  memcpy(to + CENTRAL, m->name, m->name_length);
  return CENTRAL + m->name_length;
}

static size_t put_local(uint8_t *to, const member *m) {
  memset(to, 0, LOCAL);
  memcpy(to, "PK\3\4\24\0", 6);
  put(to + 8, m->method, 2);
  put(to + 14, m->checksum, 4);
  put(to + 18, m->length, 4);
  put(to + 22, m->full, 4);
  put(to + 26, m->name_length, 2);
  memcpy(to + LOCAL, m->name, m->name_length);
  memcpy(to + LOCAL + m->name_length, m->content, m->length);
  return LOCAL + m->name_length + m->length;
}

/* 0: it does not fit. */
static size_t put_archive(uint8_t *to, size_t most, const member *list, int n) {
  size_t need = END, at = 0, locals[MEMBERS] = {0};
  for (int i = 0; i < n; i++) need += LOCAL + CENTRAL + 2 * list[i].name_length + list[i].length;
  if (need > most) return 0;
  for (int i = 0; i < n; i++) {
    locals[i] = at;
    at += put_local(to + at, &list[i]);
  }
  size_t central = at;
  for (int i = 0; i < n; i++) at += put_central(to + at, &list[i], locals[i]);
  memset(to + at, 0, END);
  memcpy(to + at, "PK\5\6", 4);
  put(to + at + 8, (uint64_t)n, 2);
  put(to + at + 10, (uint64_t)n, 2);
  put(to + at + 12, at - central, 4);
  put(to + at + 16, central, 4);
  return at + END;
}

/* Changes a member in a copy of it, which the caller frees. */
static uint8_t *change_member(member *m, size_t room, unsigned seed) {
  int of_name = seed % 5 == 0;
  size_t length = of_name ? m->name_length : m->length;
  uint8_t *copy = malloc(length + room + 1);
  if (!copy) return NULL;
  memcpy(copy, of_name ? m->name : m->content, length);
  if (of_name) {
    m->name_length = LLVMFuzzerMutate(copy, length, length + (room < 64 ? room : 64));
    m->name = copy;
    return copy;
  }
  m->length = m->method ? LLVMFuzzerMutate(copy, length, length + room)
                        : mutate_npy(copy, length, length + room, seed / 5);
  m->content = copy;
  if (!m->method) m->full = (uint32_t)m->length, m->checksum = checksum(copy, m->length);
  return copy;
}

size_t mutate_npz(uint8_t *bytes, size_t size, size_t most, unsigned seed) {
  member list[MEMBERS];
  int n = seed % 16 ? list_members(bytes, size, list) : 0;
  uint8_t *file = n ? malloc(most + 1) : NULL, *copy = NULL;
  if (!file) return LLVMFuzzerMutate(bytes, size, most);
  member *m = &list[seed / 16 % (unsigned)n];
  unsigned how = seed / 256 % 16;
  if (how == 0 && n > 1)
    *m = list[--n];
  else if (how == 1 && n < MEMBERS)
    list[n++] = *m;
  else
    copy = change_member(m, most > size ? most - size : 0, seed / 4096);
  size_t now = put_archive(file, most, list, n);
  if (now) memcpy(bytes, file, now);
  free(file);
  free(copy);
  return now ? now : LLVMFuzzerMutate(bytes, size, most);
}

/* ---- Safetensors ---- */

/* Changes the header, whose room is `most`; its new length. */
static size_t mutate_header(uint8_t *header, size_t length, size_t most, unsigned seed) {
  static const char *const words[] = {
      "0",    "1",         "2",       "3",         "4",           "7",        "-1",  "16777216",
      "1e30", "0.5",       "on",      "off",       "nan",         "dvbf",     "vae", "linear",
      "dkf",  "vrnn",      "storn",   "e2c",       "mlp",         "F32",      "I64", "U8",
      "svae", "student-t", "poisson", "bernoulli", "categorical", "patterns", ""};
  size_t from, to;
  if (!length) return length;
  unsigned how = seed % 8, at = seed / 8;
  if (how < 4) { /* a name, a number or a word */
    find_piece(header, length, at % length, "\",:[]{}", &from, &to);
    return replace(header, length, most, from, to - from, words[at / 64 % (sizeof words / sizeof *words)]);
  }
  find_piece(header, length, at % length, ",", &from, &to);
  to += to < length;
  if (how == 4) { /* one entry less */
    memmove(header + from, header + to, length - to);
    return length - (to - from);
  }
  if (how == 5 && to - from <= most - length) { /* one twice */
    memmove(header + to, header + from, length - from);
    return length + (to - from);
  }
  /* A short piece, so that most of it stays. */
  size_t piece = length < 48 ? length : 48, first = length > piece ? at % (length - piece) : 0;
  return mutate_part(header, length, first, &piece, most);
}

/* The first eight bytes are the length of the header; values follow it, whose number stays. */
size_t mutate_safetensors(uint8_t *bytes, size_t size, size_t most, unsigned seed) {
  static const uint32_t values[] = {0,          1,          0x80000000, 0x3f800000,
                                    0x7f800000, 0xff800000, 0x7fc00000, 0x7f7fffff};
  if (size < 9 || seed % 16 == 0) return LLVMFuzzerMutate(bytes, size, most);
  uint64_t said = get(bytes, 8);
  size_t length = said < size - 8 ? (size_t)said : size - 8, rest = size - 8 - length;
  seed /= 16;
  if (seed % 8 < 2 && rest >= 4) {
    put(bytes + 8 + length + seed / 64 % (rest / 4) * 4, values[seed / 8 % 8], 4);
    return size;
  }
  if (seed % 8 == 2) return mutate_part(bytes, size, 8 + length, &rest, most);
  uint8_t *header = malloc(length + (most - size) + 1);
  if (!header) return size;
  memcpy(header, bytes + 8, length);
  size_t now = mutate_header(header, length, length + (most - size), seed / 8);
  memmove(bytes + 8 + now, bytes + 8 + length, rest);
  memcpy(bytes + 8, header, now);
  put(bytes, now, 8);
  free(header);
  return 8 + now + rest;
}

/* ---- CSV ---- */

/* Gives a cell another value, or repeats a line. */
size_t mutate_csv(uint8_t *bytes, size_t size, size_t most, unsigned seed) {
  static const char *const values[] = {"",
                                       "NaN",
                                       "1e309",
                                       "-0",
                                       "0x10",
                                       "\"a\"\"b\"",
                                       "2024-01-01 00:00:00",
                                       "12:30",
                                       "\"1,5\"",
                                       "1,5",
                                       "x",
                                       "time",
                                       "u",
                                       "-1e-320",
                                       "2024-01-01T00:00:00+02:00",
                                       "01/02/2024",
                                       "\r\n",
                                       "#",
                                       ";",
                                       "\t",
                                       "y [m/s]",
                                       "99999999999999999999",
                                       "\xef\xbb\xbf",
                                       "\n\n",
                                       "1_0",
                                       "inf",
                                       "sequence"};
  if (!size || seed % 4 == 0) return LLVMFuzzerMutate(bytes, size, most);
  size_t from, to;
  find_piece(bytes, size, seed / 4 % size, seed % 4 == 1 ? "\n" : ",;\t\n", &from, &to);
  if (seed % 4 != 1)
    return replace(bytes, size, most, from, to - from, values[seed / 64 % (sizeof values / sizeof *values)]);
  size_t length = to - from + (to < size);
  if (size + length > most) return LLVMFuzzerMutate(bytes, size, most);
  memmove(bytes + from + length, bytes + from, size - from);
  return size + length;
}

/* ---- JSON ---- */

/* Gives a name or a value another one. */
size_t mutate_json(uint8_t *bytes, size_t size, size_t most, unsigned seed) {
  static const char *const values[] = {"null",
                                       "true",
                                       "0",
                                       "1",
                                       "2",
                                       "4",
                                       "-1",
                                       "1073741823",
                                       "1073741824",
                                       "9223372036854775807",
                                       "1e308",
                                       "0.1",
                                       "[]",
                                       "{}",
                                       "[1, 2]",
                                       "[2, 2]",
                                       "\"\"",
                                       "\"a\"",
                                       "\"\\u0000\"",
                                       "\"\\ud800\"",
                                       "\"channels\": 3",
                                       "\"dates\": true",
                                       "\"u_units\": [\"A\"]"};
  if (!size || seed % 4 == 0) return LLVMFuzzerMutate(bytes, size, most);
  size_t from, to;
  find_piece(bytes, size, seed / 4 % size, ",:[]{}", &from, &to);
  return replace(bytes, size, most, from, to - from, values[seed / 64 % (sizeof values / sizeof *values)]);
}
