// What contexts of a plan share, and what a plan file keeps of it.
#include <string.h>

#include "backends/cpu/choice.h"
#include "base/alloc.h"

static assay_status_t copy_text(const char* text, char** out) {
  if (!text) return NULL;
  const size_t n = strlen(text) + 1;
  *out = assay_malloc(n);
  if (!*out) return assay_status_no_memory();
  memcpy(*out, text, n);
  return NULL;
}

static assay_status_t check_sources(const char* sources) {
  for (const char* s = sources; s; s = strchr(s, ',')) {
    if (*s == ',') s++;
    bool known = false;
    const size_t n = strcspn(s, ",");
    for (size_t t = 0; t < cpu_n_tactics; t++)
      known |= strlen(cpu_tactics[t]->source) == n && strncmp(cpu_tactics[t]->source, s, n) == 0;
    if (!known)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                         "'%.*s' is no source of tactics of the CPU; there are assay and onednn",
                         (int)n, s);
  }
  return NULL;
}

assay_status_t cpu_shared_create(const assay_backend_options_t* options, cpu_shared_t** out) {
  static const assay_backend_options_t none = {0};
  const assay_backend_options_t* o = options ? options : &none;
  cpu_shared_t* s = NULL;
  bool fits = true;
  ASSAY_TRY(ASSAY_NEW(&s));
  s->measure = o->measure;
  assay_status_t st = assay_weights_create(&s->store);
  if (!st) st = cpu_timings_create(&s->timings);
  if (!st) st = check_sources(o->tactic_sources);
  if (!st) st = copy_text(o->tactic_sources, &s->sources);
  if (!st && o->timings) st = cpu_timings_parse(s->timings, o->timings, o->timings_bytes, &fits);
  if (st) return cpu_shared_destroy(s), st;
  *out = s;
  return NULL;
}

void cpu_shared_destroy(cpu_shared_t* s) {
  if (!s) return;
  assay_weights_destroy(s->store);
  cpu_timings_destroy(s->timings);
  assay_free(s->sources);
  assay_str_deinit(&s->text);
  assay_free(s);
}
