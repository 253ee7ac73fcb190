// What malloc keeps of freed memory, with glibc.
//
// Each thread allocates from an arena. malloc_trim returns the free pages of all arenas, except those at the end of an
// arena other than the first. These are returned only when a block of 64 KiB or more is freed, which may never happen
// again in the arena of a thread that has ended.
//
// A new thread takes over the arena of one that has ended, if there is one; then it makes an arena of its own, as long
// as there are fewer than the bound; then it shares the next one in turn. So twice as many threads at once as there may
// be arenas reach them all.

#include <malloc.h>
#include <pthread.h>
#include <semaphore.h>
#include <stdlib.h>

#include "CLinux.h"

enum { LARGE_BLOCK = 128 * 1024, STACK_BYTES = 256 * 1024, MAXIMUM_ARENAS = 64 };

static int arenas = 8, kept_bytes = LARGE_BLOCK;

struct visit {
  sem_t done;
  pthread_mutex_t gate;
};

void stillwave_bound_kept_memory(int bytes, int arena_count) {
  arenas = arena_count < MAXIMUM_ARENAS ? arena_count : MAXIMUM_ARENAS;
  kept_bytes = bytes;
  mallopt(M_MMAP_THRESHOLD, bytes);
  mallopt(M_TRIM_THRESHOLD, bytes);
  mallopt(M_ARENA_MAX, arenas);
}

static void *visit_arena(void *argument) {
  struct visit *visit = argument;
  void *volatile block = malloc(LARGE_BLOCK);
  free(block);
  sem_post(&visit->done);
  // A thread that ended now would leave its arena to the next one.
  pthread_mutex_lock(&visit->gate);
  pthread_mutex_unlock(&visit->gate);
  return NULL;
}

void stillwave_trim_memory(void) {
  malloc_trim(0);
  // For the blocks that are freed below.
  mallopt(M_TRIM_THRESHOLD, LARGE_BLOCK);
  struct visit visit = {.gate = PTHREAD_MUTEX_INITIALIZER};
  pthread_t threads[2 * MAXIMUM_ARENAS];
  pthread_attr_t attributes;
  int count = 0;
  sem_init(&visit.done, 0, 0);
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, STACK_BYTES);
  pthread_mutex_lock(&visit.gate);
  while (count < 2 * arenas && pthread_create(&threads[count], &attributes, visit_arena, &visit) == 0) count++;
  for (int index = 0; index < count; index++)
    while (sem_wait(&visit.done) != 0) continue;
  pthread_mutex_unlock(&visit.gate);
  for (int index = 0; index < count; index++) pthread_join(threads[index], NULL);
  pthread_attr_destroy(&attributes);
  pthread_mutex_destroy(&visit.gate);
  sem_destroy(&visit.done);
  mallopt(M_TRIM_THRESHOLD, kept_bytes);
}
