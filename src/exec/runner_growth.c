// What of a run grows from one to the next: dimensions, for which segments are given other sizes,
// and values that are appended to in place.
#include <string.h>

#include "base/alloc.h"
#include "exec/runner.h"

void assay_runner_drop_segment(assay_runner_t* r, size_t i) {
  r->made += r->segments[i]->made;
  assay_segment_destroy(r->segments[i]);
  r->segments[i] = r->segments[--r->n_segments];
}

assay_append_t* assay_runner_append_of(const assay_runner_t* r, const assay_value_t* v) {
  for (size_t i = 0; i < r->setting.n_appends; i++)
    if (r->appends[i]->in == v || r->appends[i]->out == v) return r->appends[i];
  return NULL;
}

assay_status_t assay_runner_grow(void* state, const assay_growth_t* growth) {
  assay_runner_t* r = state;
  size_t i = 0;
  while (i < r->setting.n_growth && strcmp(r->growth[i].name, growth->name) != 0) i++;
  ASSAY_TRY(assay_grow(&r->growth, &r->cap_growth, i + 1, sizeof *r->growth));
  // What was prepared before is not for this.
  while (r->n_segments) assay_runner_drop_segment(r, 0);
  r->growth[i] = *growth;
  if (i == r->setting.n_growth) r->setting.n_growth++;
  r->setting.growth = r->growth;
  return NULL;
}

assay_status_t assay_runner_append(void* state, assay_append_t* a, bool on) {
  assay_runner_t* r = state;
  const size_t n = r->setting.n_appends;
  size_t i = 0;
  while (i < n && r->appends[i] != a) i++;
  if (on) ASSAY_TRY(assay_grow(&r->appends, &r->cap_appends, n + 1, sizeof *r->appends));
  while (r->n_segments) assay_runner_drop_segment(r, 0);
  if (on && i == n) r->appends[r->setting.n_appends++] = a;
  if (!on && i < n) r->appends[i] = r->appends[--r->setting.n_appends];
  r->setting.appends = r->appends;
  return NULL;
}

void assay_runner_settle(assay_runner_t* r, bool in_place) {
  r->appending = in_place;
  for (size_t i = 0; i < r->setting.n_appends; i++) {
    assay_append_t* a = r->appends[i];
    const assay_tensor_t* t = assay_value_slot_any(&r->values[a->in->id]);
    a->appended = in_place && t;
    if (t) assay_append_settle(a, t->dims, in_place);
  }
}

size_t assay_runner_made(void* state) {
  const assay_runner_t* r = state;
  size_t n = r->made;
  for (size_t i = 0; i < r->n_segments; i++) n += r->segments[i]->made;
  return n;
}

// The segment that ran last of those that may be given the sizes at hand; n_segments: there is
// none.
static size_t last_to_grow(const assay_runner_t* r, int first) {
  size_t found = r->n_segments;
  for (size_t i = 0; i < r->n_segments; i++)
    if (assay_segment_may_grow(r->segments[i], first, &r->setting) &&
        (found == r->n_segments || r->segments[i]->used > r->segments[found]->used))
      found = i;
  return found;
}

assay_status_t assay_runner_grow_segment(assay_runner_t* r, int first, assay_segment_t** out) {
  size_t i;
  while ((i = last_to_grow(r, first)) < r->n_segments) {
    bool ok = false;
    assay_status_t st = assay_segment_resize(r->segments[i], &r->setting, &ok);
    if (!st && ok) return *out = r->segments[i], NULL;
    assay_runner_drop_segment(r, i);
    ASSAY_TRY(st);
  }
  return NULL;
}
