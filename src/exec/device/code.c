// Compiled kernels, as bytes.
#include "exec/device/code.h"

#include <pthread.h>
#include <string.h>

#include "base/alloc.h"

typedef struct entry {
  char* key;
  void* data;
  size_t bytes;
  uint64_t used;
} entry_t;

// Of the process: building an engine shares anew after its kernels were timed, and would compile
// all of them again.
static struct {
  pthread_mutex_t lock;
  entry_t* at;
  size_t n, cap, bytes;
  uint64_t clock;
} kept = {.lock = PTHREAD_MUTEX_INITIALIZER};

static void drop(size_t i) {
  assay_free(kept.at[i].key);
  assay_free(kept.at[i].data);
  kept.bytes -= kept.at[i].bytes;
  kept.at[i] = kept.at[--kept.n];
}

static void make_room(size_t bytes) {
  while (kept.n && kept.bytes + bytes > ASSAY_CODE_BYTES) {
    size_t oldest = 0;
    for (size_t i = 1; i < kept.n; i++)
      if (kept.at[i].used < kept.at[oldest].used) oldest = i;
    drop(oldest);
  }
}

static entry_t* find(const char* key) {
  for (size_t i = 0; i < kept.n; i++)
    if (strcmp(kept.at[i].key, key) == 0) return kept.at[i].used = ++kept.clock, &kept.at[i];
  return NULL;
}

// Takes data, also where it fails.
static assay_status_t keep(const char* key, void* take_data, size_t bytes, const entry_t** out) {
  char* copy = NULL;
  make_room(bytes);
  assay_status_t st = assay_new_array(strlen(key) + 1, 1, &copy);
  if (!st) st = assay_grow(&kept.at, &kept.cap, kept.n + 1, sizeof *kept.at);
  if (st) return assay_free(copy), assay_free(take_data), st;
  strcpy(copy, key);
  kept.at[kept.n++] = (entry_t){copy, take_data, bytes, ++kept.clock};
  kept.bytes += bytes;
  *out = &kept.at[kept.n - 1];
  return NULL;
}

static assay_status_t copy_to(void* user, void* to) {
  const entry_t* e = user;
  memcpy(to, e->data, e->bytes);
  return NULL;
}

static assay_status_t get(assay_weights_t* store, const char* key, assay_code_compile_t* compile,
                          void* user, const void** out, size_t* out_bytes) {
  const entry_t* e = find(key);
  if (!e) {
    void* data = NULL;
    size_t bytes = 0;
    ASSAY_TRY(compile(user, &data, &bytes));
    ASSAY_TRY(keep(key, data, bytes, &e));
  }
  *out_bytes = e->bytes;
  return assay_weights_get(store, key, e->bytes, copy_to, (void*)(uintptr_t)e, out);
}

assay_status_t assay_code_get(assay_weights_t* store, const char* key,
                              assay_code_compile_t* compile, void* user, const void** out,
                              size_t* out_bytes) {
  if (assay_weights_find(store, key, out, out_bytes)) return NULL;
  pthread_mutex_lock(&kept.lock);
  assay_status_t st = get(store, key, compile, user, out, out_bytes);
  pthread_mutex_unlock(&kept.lock);
  return st;
}

bool assay_code_is(const char* key) {
  return strncmp(key, ASSAY_CODE_KEY, strlen(ASSAY_CODE_KEY)) == 0;
}

bool assay_code_is_kept(const char* key) {
  pthread_mutex_lock(&kept.lock);
  const bool is_there = find(key) != NULL;
  pthread_mutex_unlock(&kept.lock);
  return is_there;
}

assay_status_t assay_code_keep(const char* key, const void* data, size_t bytes) {
  const entry_t* e;
  char* copy = NULL;
  ASSAY_TRY(assay_new_array(bytes, 1, &copy));
  memcpy(copy, data, bytes);
  pthread_mutex_lock(&kept.lock);
  const bool is_there = find(key) != NULL;
  assay_status_t st = is_there ? NULL : keep(key, copy, bytes, &e);
  pthread_mutex_unlock(&kept.lock);
  if (is_there) assay_free(copy);
  return st;
}

void assay_code_forget(void) {
  pthread_mutex_lock(&kept.lock);
  while (kept.n) drop(kept.n - 1);
  assay_free(kept.at);
  kept.at = NULL;
  kept.cap = 0;
  pthread_mutex_unlock(&kept.lock);
}
