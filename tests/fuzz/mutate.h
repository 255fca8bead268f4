/* Changes files so that what holds them together stays right: lengths of headers, checksums of archives. A
 * fuzzer that changes bytes alone seldom comes further than to the check of these. */
#ifndef MUTATE_H
#define MUTATE_H

#include <stddef.h>
#include <stdint.h>

/* Each changes bytes[size] in place, has room for `most` bytes, and returns the new size. */
typedef size_t mutate_fn(uint8_t *bytes, size_t size, size_t most, unsigned seed);

mutate_fn mutate_npy, mutate_npz, mutate_safetensors, mutate_csv, mutate_json;

/* Of libFuzzer. */
size_t LLVMFuzzerMutate(uint8_t *bytes, size_t size, size_t most);
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t most, unsigned seed);

#endif
