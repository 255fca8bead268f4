/* FNV-1a, to tell contents apart. */
#ifndef DV_HASH_H
#define DV_HASH_H

#include <stddef.h>
#include <stdint.h>

static const uint64_t dv_hash_start = 0xcbf29ce484222325;

static inline uint64_t dv_hash_byte(uint64_t hash, unsigned char byte) {
  return (hash ^ byte) * 0x100000001b3;
}

static inline uint64_t dv_hash(uint64_t hash, const void *bytes, size_t size) {
  const unsigned char *at = bytes;
  for (size_t i = 0; i < size; i++) hash = dv_hash_byte(hash, at[i]);
  return hash;
}

/* A number, its lowest byte first. */
static inline uint64_t dv_hash_number(uint64_t hash, uint64_t number) {
  for (int i = 0; i < 64; i += 8) hash = dv_hash_byte(hash, (unsigned char)(number >> i));
  return hash;
}

#endif
