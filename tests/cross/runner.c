/* Calls functions of a library of kernels: runner LIBRARY CALLS RESULTS.
 *
 * CALLS holds 64-bit words in the byte order of the machine, all machines being little-endian: the number of calls; for each the
 * length and the bytes of the symbol (padded to words) and the number of arrays; for each array its type code, bits, rank, shape,
 * number of bytes and content (padded). RESULTS gets for each call the status, the length and the bytes of the message, and the
 * bytes of each array. */
#define _POSIX_C_SOURCE 200112L
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include "kernels.h"

typedef int32_t (*entry)(const DLTensor *const *, int32_t, char *, size_t);

static const char *at;

static int64_t word(void) {
  int64_t value;
  memcpy(&value, at, 8);
  at += 8;
  return value;
}

static void *bytes(size_t size) {
  void *copy = NULL;
  if (posix_memalign(&copy, 64, size + 64)) exit(5);
  memcpy(copy, at, size);
  at += (size + 7) / 8 * 8;
  return copy;
}

static void put(FILE *out, const void *data, size_t size) {
  int64_t length = (int64_t)size;
  fwrite(&length, 8, 1, out);
  fwrite(data, 1, size, out);
}

int main(int argc, char **argv) {
  if (argc != 4) return 2;
  void *library = dlopen(argv[1], RTLD_NOW);
  if (!library) return fprintf(stderr, "%s\n", dlerror()), 3;
  FILE *in = fopen(argv[2], "rb"), *out = fopen(argv[3], "wb");
  if (!in || !out) return 4;
  fseek(in, 0, SEEK_END);
  size_t size = (size_t)ftell(in);
  rewind(in);
  char *all = malloc(size);
  if (!all || fread(all, 1, size, in) != size) return 5;
  at = all;
  for (int64_t calls = word(); calls > 0; calls--) {
    int64_t length = word();
    char *symbol = bytes((size_t)length);
    symbol[length] = 0;
    int64_t count = word();
    DLTensor *tensors = calloc((size_t)count, sizeof *tensors);
    const DLTensor **pointers = calloc((size_t)count, sizeof *pointers);
    size_t *sizes = calloc((size_t)count, sizeof *sizes);
    for (int64_t k = 0; k < count; k++) {
      tensors[k].device.device_type = 1;
      tensors[k].dtype.code = (uint8_t)word();
      tensors[k].dtype.bits = (uint8_t)word();
      tensors[k].dtype.lanes = 1;
      tensors[k].ndim = (int32_t)word();
      tensors[k].shape = calloc((size_t)tensors[k].ndim + 1, 8);
      for (int32_t d = 0; d < tensors[k].ndim; d++) tensors[k].shape[d] = word();
      sizes[k] = (size_t)word();
      tensors[k].data = bytes(sizes[k]);
      pointers[k] = &tensors[k];
    }
    entry function;
    void *address = dlsym(library, symbol);
    if (!address) return fprintf(stderr, "%s\n", dlerror()), 6;
    memcpy(&function, &address, sizeof function);
    char message[512] = "";
    int64_t status = function(pointers, (int32_t)count, message, sizeof message);
    fwrite(&status, 8, 1, out);
    put(out, message, strlen(message));
    for (int64_t k = 0; k < count; k++) put(out, tensors[k].data, sizes[k]);
  }
  return fclose(out) ? 7 : 0;
}
