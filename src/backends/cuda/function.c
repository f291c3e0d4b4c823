// Kernels by their sources.
#include "backends/cuda/function.h"

#include <pthread.h>
#include <string.h>

#include "backends/cuda/compiled.h"
#include "backends/cuda/kernels.h"
#include "backends/cuda/nvrtc.h"
#include "base/alloc.h"
#include "base/hash.h"
#include "base/shown.h"
#include "exec/device/code.h"

typedef struct loaded {
  char* key;  // of the code
  cuda_module_t module;
} loaded_t;

// A source that was asked for in a rehearsal, with texts of its own.
typedef struct noted {
  cuda_source_t source;
  char* texts;  // of the source and the key
  const char* key;
  void* code;  // once compiled
  size_t bytes;
} noted_t;

struct cuda_functions {
  assay_device_t* device;
  assay_weights_t* store;
  pthread_mutex_t lock;
  loaded_t* loaded;
  size_t n, cap;
  bool rehearses;
  noted_t* noted;
  size_t n_noted, cap_noted;
};

assay_status_t cuda_functions_create(assay_device_t* d, assay_weights_t* store,
                                     cuda_functions_t** out) {
  ASSAY_TRY(ASSAY_NEW(out));
  (*out)->device = d;
  (*out)->store = store;
  pthread_mutex_init(&(*out)->lock, NULL);
  return NULL;
}

static void forget_noted(cuda_functions_t* f) {
  for (size_t i = 0; i < f->n_noted; i++) {
    assay_free(f->noted[i].texts);
    assay_free(f->noted[i].code);
  }
  assay_free(f->noted);
  f->noted = NULL;
  f->n_noted = f->cap_noted = 0;
}

void cuda_functions_destroy(cuda_functions_t* f) {
  if (!f) return;
  for (size_t i = 0; i < f->n; i++) {
    cuda_module_unload(f->device, f->loaded[i].module);
    assay_free(f->loaded[i].key);
  }
  assay_free(f->loaded);
  forget_noted(f);
  pthread_mutex_destroy(&f->lock);
  assay_free(f);
}

// ---- code ---------------------------------------------------------------------------------------

typedef struct asked {
  const cuda_functions_t* functions;
  const cuda_source_t* source;
  const char* key;
} asked_t;

// By the compiler, or by it in an earlier process.
static assay_status_t compile(void* user, void** out, size_t* out_bytes) {
  const asked_t* a = user;
  const cuda_properties_t p = cuda_device_properties(a->functions->device);
  const cuda_compiler_t* compiler;
  assay_str_t key = {0};
  ASSAY_TRY(cuda_compiler_get(p.driver_version, &compiler));
  const cuda_compilation_t what = {.file = a->source->file,
                                   .program = a->source->program,
                                   .options = a->source->options,
                                   .capability = p.capability};
  assay_str_printf_raw(&key, "%s by %d.%d " CUDA_COMPILER_OPTIONS, a->key, compiler->major,
                       compiler->minor);
  assay_status_t st = assay_str_status(&key);
  if (!st) st = cuda_compiled_read(assay_str_get(&key), out, out_bytes);
  if (!st && !*out) {
    st = cuda_compile(compiler, &what, out, out_bytes, NULL);
    if (!st) st = cuda_compiled_write(assay_str_get(&key), *out, *out_bytes);
  }
  assay_str_deinit(&key);
  if (st) assay_free(*out), *out = NULL;
  return st;
}

// Names all that the code depends on but the compiler's version: a plan is run without one.
static void print_key(const cuda_functions_t* f, const cuda_source_t* s, assay_str_t* out) {
  const size_t n = s->program ? strlen(s->program) : 0;
  assay_str_printf_raw(out, ASSAY_CODE_KEY "sm_%d %s %s %016llx%016llx of %s",
                       cuda_device_properties(f->device).capability, s->file, s->options,
                       (unsigned long long)(n ? assay_hash(s->program, n, 1) : 0),
                       (unsigned long long)(n ? assay_hash(s->program, n, 2) : 0),
                       cuda_kernel_files_digest());
}

// ---- modules ------------------------------------------------------------------------------------

static cuda_module_t find(const cuda_functions_t* f, const char* key) {
  for (size_t i = 0; i < f->n; i++)
    if (strcmp(f->loaded[i].key, key) == 0) return f->loaded[i].module;
  return NULL;
}

static assay_status_t load(cuda_functions_t* f, const cuda_source_t* s, const char* key,
                           cuda_module_t* out) {
  asked_t asked = {f, s, key};
  const void* code = NULL;
  size_t bytes = 0;
  char* copy = NULL;
  ASSAY_TRY(assay_code_get(f->store, key, compile, &asked, &code, &bytes));
  ASSAY_TRY(assay_grow(&f->loaded, &f->cap, f->n + 1, sizeof *f->loaded));
  ASSAY_TRY(assay_new_array(strlen(key) + 1, 1, &copy));
  strcpy(copy, key);
  assay_status_t st = cuda_module_load(f->device, code, bytes, out);
  if (st) return assay_free(copy), st;
  f->loaded[f->n++] = (loaded_t){copy, *out};
  return NULL;
}

// ---- rehearsals ---------------------------------------------------------------------------------

static const char* add_text(char** at, const char* text) {
  char* const to = *at;
  if (!text) return NULL;
  *at = stpcpy(to, text) + 1;
  return to;
}

static size_t length(const char* text) { return text ? strlen(text) + 1 : 0; }

static bool is_noted(const cuda_functions_t* f, const char* key) {
  for (size_t i = 0; i < f->n_noted; i++)
    if (strcmp(f->noted[i].key, key) == 0) return true;
  return false;
}

// Whether its code is at hand already.
static bool is_kept(const cuda_functions_t* f, const char* key) {
  const void* code;
  size_t bytes;
  return find(f, key) || assay_weights_find(f->store, key, &code, &bytes) ||
         assay_code_is_kept(key);
}

static assay_status_t note(cuda_functions_t* f, const cuda_source_t* s, const char* key) {
  char* at = NULL;
  if (is_noted(f, key) || is_kept(f, key)) return NULL;
  ASSAY_TRY(assay_grow(&f->noted, &f->cap_noted, f->n_noted + 1, sizeof *f->noted));
  ASSAY_TRY(assay_new_array(
      length(s->file) + length(s->kernel) + length(s->options) + length(s->program) + length(key),
      1, &at));
  noted_t* n = &f->noted[f->n_noted++];
  *n = (noted_t){.texts = at};
  n->source = (cuda_source_t){.file = add_text(&at, s->file),
                              .kernel = add_text(&at, s->kernel),
                              .options = add_text(&at, s->options),
                              .program = add_text(&at, s->program)};
  n->key = add_text(&at, key);
  return NULL;
}

void cuda_functions_rehearse(cuda_functions_t* f) { f->rehearses = true; }

static assay_status_t compile_noted(const cuda_functions_t* f, noted_t* n) {
  asked_t asked = {f, &n->source, n->key};
  return assay_status_note(compile(&asked, &n->code, &n->bytes), "kernel '%s' of %s",
                           n->source.kernel, n->source.file);
}

assay_status_t cuda_functions_rehearsed(cuda_functions_t* f) {
  assay_status_t first = NULL;
  f->rehearses = false;
#pragma omp parallel for schedule(dynamic)
  for (size_t i = 0; i < f->n_noted; i++) {
    assay_status_t st = compile_noted(f, &f->noted[i]);
    if (!st) st = assay_code_keep(f->noted[i].key, f->noted[i].code, f->noted[i].bytes);
#pragma omp critical(cuda_functions_rehearsed)
    first = assay_status_join(first, st);
  }
  forget_noted(f);
  return first;
}

// ---- asking -------------------------------------------------------------------------------------

static assay_status_t get(cuda_functions_t* f, const cuda_source_t* s, const char* key,
                          cuda_kernel_t* out) {
  // Not NULL, as what could be launched is not.
  static char nothing;
  cuda_module_t module = find(f, key);
  if (f->rehearses && !s->at_once) return *out = (cuda_kernel_t)(void*)&nothing, note(f, s, key);
  if (!module) ASSAY_TRY(load(f, s, key, &module));
  return cuda_module_kernel(f->device, module, s->kernel, s->shared_bytes, out);
}

assay_status_t cuda_function_get(cuda_functions_t* f, const cuda_source_t* source,
                                 cuda_kernel_t* out) {
  assay_str_t key = {0};
  print_key(f, source, &key);
  assay_status_t st = assay_str_status(&key);
  pthread_mutex_lock(&f->lock);
  if (!st) st = get(f, source, assay_str_get(&key), out);
  pthread_mutex_unlock(&f->lock);
  assay_str_deinit(&key);
  return assay_status_note(st, "kernel '%s' of %s", source->kernel, source->file);
}
