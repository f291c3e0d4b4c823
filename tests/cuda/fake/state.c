// What goes wrong on demand, and what is there.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "internal.h"

fake_t fake = {.lock = PTHREAD_MUTEX_INITIALIZER,
               .changed = PTHREAD_COND_INITIALIZER,
               .state = {.version = 13000, .devices = 1, .capability = 90}};
_Thread_local int context_stack;

EXPORT fake_state_t* fake_state(void);
EXPORT fake_state_t* fake_state(void) { return &fake.state; }

// What made() has given, for fake_end().
typedef struct thing {
  struct thing *next, *before;
} thing_t;
static thing_t things = {&things, &things};

cuda_result_t called(const char* name, bool in_context) {
  fake_state_t* s = &fake.state;
  cuda_result_t r = 0;
  pthread_mutex_lock(&fake.lock);
  s->calls++;
  if (s->fail_after > 0 && --s->fail_after == 0) {
    snprintf(s->failed, sizeof s->failed, "%s", name);
    r = s->result;
  }
  if (!r) r = s->broken;
  pthread_mutex_unlock(&fake.lock);
  if (r) return r;
  return in_context && !context_stack ? INVALID_CONTEXT : 0;
}

void break_context(int result, const char* message) {
  fake_state_t* s = &fake.state;
  pthread_mutex_lock(&fake.lock);
  if (!s->broken) {
    s->broken = result;
    snprintf(s->message, sizeof s->message, "%s", message);
  }
  if (!s->quiet) fprintf(stderr, "a launch failed: %s\n", message);
  pthread_mutex_unlock(&fake.lock);
}

void live(int n) {
  pthread_mutex_lock(&fake.lock);
  fake.state.live += n;
  pthread_mutex_unlock(&fake.lock);
}

void* made(size_t bytes) {
  thing_t* t = calloc(1, sizeof *t + bytes);
  if (!t) return NULL;
  pthread_mutex_lock(&fake.lock);
  *t = (thing_t){things.next, &things};
  t->next->before = t;
  things.next = t;
  fake.state.live++;
  pthread_mutex_unlock(&fake.lock);
  return t + 1;
}

void gone(void* p) {
  if (!p) return;
  thing_t* t = (thing_t*)p - 1;
  pthread_mutex_lock(&fake.lock);
  t->next->before = t->before;
  t->before->next = t->next;
  fake.state.live--;
  pthread_mutex_unlock(&fake.lock);
  free(t);
}

EXPORT void fake_end(void);
EXPORT void fake_end(void) {
  streams_end();
  while (things.next != &things) gone(things.next + 1);
  memory_end();
  pthread_mutex_lock(&fake.lock);
  fake.state.live = 0;
  pthread_mutex_unlock(&fake.lock);
}

// ---- random numbers -----------------------------------------------------------------------------

// MurmurHash3's finalizer: all bits of the result depend on all of x.
static uint32_t mixed(uint32_t x) {
  x = (x ^ x >> 16) * 0x85ebca6bU;
  x = (x ^ x >> 13) * 0xc2b2ae35U;
  return x ^ x >> 16;
}

uint32_t seed_of(uint32_t a, uint32_t b) {
  const char* seed = getenv("ASSAY_FAKE_SEED");
  return mixed(mixed((uint32_t)(seed ? strtoul(seed, NULL, 10) : 1) + a) + b);
}

uint32_t draw(void) {
  static atomic_uint n;
  return seed_of(0x5eed, atomic_fetch_add(&n, 1));
}
