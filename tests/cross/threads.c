/* Runs a parallel loop of a library on several threads, again and again, and in the child of a fork: threads LIBRARY.
 *
 * Every result is compared with that of one thread. Prints how many threads the process had besides its first. The child does
 * with one thread: qemu ends a child that makes threads. */
#define _POSIX_C_SOURCE 200112L
#include <dirent.h>
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include "kernels.h"

enum { ROWS = 37, COLUMNS = 64 };

static int32_t (*rows)(const DLTensor *const *, int32_t, char *, size_t);
static int32_t (*set_num_threads)(int32_t);
static float in[ROWS][COLUMNS], serial[ROWS][COLUMNS], out[ROWS][COLUMNS];

static int run(int32_t threads, float (*result)[COLUMNS]) {
  int64_t shape[2] = {ROWS, COLUMNS};
  DLTensor tensors[2] = {{in, {1, 0}, 2, {2, 32, 1}, shape, NULL, 0}, {result, {1, 0}, 2, {2, 32, 1}, shape, NULL, 0}};
  const DLTensor *args[2] = {&tensors[0], &tensors[1]};
  char message[200] = "";
  int32_t status = set_num_threads(threads) ? -1 : rows(args, 2, message, sizeof message);
  if (status) fprintf(stderr, "%d threads: %d %s\n", (int)threads, (int)status, message);
  return status != 0;
}

static int compare(int32_t threads) {
  memset(out, 0, sizeof out);
  if (run(threads, out)) return 1;
  if (memcmp(out, serial, sizeof out) == 0) return 0;
  return fprintf(stderr, "%d threads: another result\n", (int)threads), 1;
}

static int tasks(void) {
  int count = 0;
  DIR *folder = opendir("/proc/self/task");
  while (folder && readdir(folder)) count++;
  if (folder) closedir(folder);
  return count;
}

int main(int argc, char **argv) {
  void *library = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
  if (!library) return fprintf(stderr, "%s\n", dlerror()), 3;
  *(void **)&rows = dlsym(library, "k_rows");
  *(void **)&set_num_threads = dlsym(library, "k_set_num_threads");
  if (!rows || !set_num_threads) return 4;
  for (int k = 0; k < ROWS * COLUMNS; k++) in[k / COLUMNS][k % COLUMNS] = (float)(k % 97) / 16.0f;
  if (run(1, serial)) return 5;
  int before = tasks();
  for (int turn = 0; turn < 200; turn++)
    if (compare(2 + turn % 7)) return 6;
  printf("%d\n", tasks() - before);
  fflush(stdout);
  pid_t child = fork();
  if (child == 0) _exit(compare(1) ? 7 : 0);
  int status = 1;
  if (child < 0 || waitpid(child, &status, 0) != child || status) return fprintf(stderr, "the child: %d\n", status), 8;
  return compare(5) ? 9 : 0;
}
