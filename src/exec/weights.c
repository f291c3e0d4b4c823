// What is made of constants, such as packed weights: made once, shared by all contexts and all
// sizes of a plan, and what a plan file holds of it.
#include "exec/weights.h"

#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "base/alloc.h"
#include "base/memory.h"

typedef struct entry {
  const char* key;
  const void* data;
  void* owned;  // NULL: borrowed
  size_t bytes;
} entry_t;

struct assay_weights {
  pthread_mutex_t lock;
  assay_arena_t* arena;  // keys
  assay_map_t index;
  entry_t* entries;
  size_t n, cap;
};

assay_status_t assay_weights_create(assay_weights_t** out) {
  assay_weights_t* s = NULL;
  ASSAY_TRY(ASSAY_NEW(&s));
  assay_status_t st = assay_arena_create(&s->arena);
  if (!st && pthread_mutex_init(&s->lock, NULL) != 0) st = assay_status_no_memory();
  if (st) {
    assay_arena_destroy(s->arena);
    assay_free(s);
    return st;
  }
  *out = s;
  return NULL;
}

void assay_weights_destroy(assay_weights_t* s) {
  if (!s) return;
  for (size_t i = 0; i < s->n; i++) assay_free(s->entries[i].owned);
  assay_free(s->entries);
  assay_map_deinit(&s->index);
  assay_arena_destroy(s->arena);
  pthread_mutex_destroy(&s->lock);
  assay_free(s);
}

// Adds an entry; on failure `owned` is the caller's.
static assay_status_t add(assay_weights_t* s, const char* key, const void* data, void* owned,
                          size_t bytes) {
  const char* kept = NULL;
  ASSAY_TRY(assay_grow(&s->entries, &s->cap, s->n + 1, sizeof *s->entries));
  ASSAY_TRY(assay_arena_strdup(s->arena, key, &kept));
  ASSAY_TRY(assay_map_put(&s->index, kept, s->n, NULL));
  s->entries[s->n++] = (entry_t){kept, data, owned, bytes};
  return NULL;
}

static assay_status_t make(assay_weights_t* s, const char* key, size_t bytes,
                           assay_weights_fill_t* fill, void* user, const void** out) {
  if (bytes > SIZE_MAX - ASSAY_WEIGHTS_ALIGNMENT) return assay_status_no_memory();
  char* owned = assay_malloc(bytes + ASSAY_WEIGHTS_ALIGNMENT);
  if (!owned) return assay_status_no_memory();
  void* data = (void*)(((uintptr_t)owned + ASSAY_WEIGHTS_ALIGNMENT - 1) / ASSAY_WEIGHTS_ALIGNMENT *
                       ASSAY_WEIGHTS_ALIGNMENT);
  assay_memory_use_large_pages(data, bytes);
  assay_status_t st = fill(user, data);
  if (!st) st = add(s, key, data, owned, bytes);
  if (st) return assay_free(owned), st;
  *out = data;
  return NULL;
}

assay_status_t assay_weights_get(assay_weights_t* s, const char* key, size_t bytes,
                                 assay_weights_fill_t* fill, void* user, const void** out) {
  assay_status_t st = NULL;
  uint64_t at;
  pthread_mutex_lock(&s->lock);
  if (assay_map_get(&s->index, key, &at) && s->entries[at].bytes == bytes)
    *out = s->entries[at].data;
  else
    st = make(s, key, bytes, fill, user, out);
  pthread_mutex_unlock(&s->lock);
  return st;
}

assay_status_t assay_weights_get_by(assay_weights_t* s, assay_str_t* take_key, size_t bytes,
                                    assay_weights_fill_t* fill, const void* user,
                                    const void** out) {
  assay_status_t st = assay_str_status(take_key);
  if (!st)
    st = assay_weights_get(s, assay_str_get(take_key), bytes, fill, (void*)(uintptr_t)user, out);
  assay_str_deinit(take_key);
  return st;
}

bool assay_weights_find(assay_weights_t* s, const char* key, const void** out_data,
                        size_t* out_bytes) {
  uint64_t at;
  pthread_mutex_lock(&s->lock);
  const bool found = assay_map_get(&s->index, key, &at);
  if (found) *out_data = s->entries[at].data;
  if (found) *out_bytes = s->entries[at].bytes;
  pthread_mutex_unlock(&s->lock);
  return found;
}

assay_status_t assay_weights_put(assay_weights_t* s, const char* key, const void* data,
                                 size_t bytes) {
  pthread_mutex_lock(&s->lock);
  assay_status_t st = add(s, key, data, NULL, bytes);
  pthread_mutex_unlock(&s->lock);
  return st;
}

size_t assay_weights_count(const assay_weights_t* s) { return s->n; }

void assay_weights_entry(const assay_weights_t* s, size_t i, const char** out_key,
                         const void** out_data, size_t* out_bytes) {
  *out_key = s->entries[i].key;
  *out_data = s->entries[i].data;
  *out_bytes = s->entries[i].bytes;
}
