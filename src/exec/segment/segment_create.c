// A segment of a plan: consecutive layers whose sizes are all known when the first one starts, with
// everything prepared for a run. How it is made, asked and ended.
#include <string.h>

#include "base/alloc.h"
#include "exec/segment/segment_internal.h"

void assay_segment_destroy(assay_segment_t* s) {
  if (!s) return;
  for (int i = 0; s->steps && i < s->end - s->first; i++) {
    if (s->steps[i].kernel) s->steps[i].kernel->destroy(s->steps[i].kernel);
    if (s->steps[i].pair) s->steps[i].pair->destroy(s->steps[i].pair);
    if (s->steps[i].joint) s->steps[i].joint->destroy(s->steps[i].joint);
    if (s->steps[i].siblings) s->steps[i].siblings->destroy(s->steps[i].siblings);
  }
  for (size_t i = 0; i < s->n_slots; i++) assay_tensor_release(s->slots[i].held);
  for (size_t i = 0; i < s->n_places; i++) assay_tensor_release(s->places[i].known);
  if (s->drop) s->drop(s->kept);
  assay_evaluator_destroy(s->truth);
  assay_sizes_deinit(&s->sizes);
  assay_free(s->key);
  assay_free(s->places);
  assay_free(s->place_of);
  assay_free(s->slots);
  assay_free(s->moves);
  assay_free(s->steps);
  assay_free(s->pipelines);
  assay_free(s);
}

const assay_place_t* assay_segment_place(const assay_segment_t* s, const assay_value_t* v) {
  return s->place_of[v->id] < 0 ? NULL : &s->places[s->place_of[v->id]];
}

int assay_segment_span_end(const assay_segment_t* s, int i) {
  while (i < s->end && (s->steps[i - s->first].kernel || s->steps[i - s->first].known)) i++;
  return i;
}

static bool is_of_shape(const assay_tensor_t* t, int rank, const int64_t* dims) {
  return t && t->kind == ASSAY_KIND_TENSOR && t->rank == rank &&
         (!rank || memcmp(t->dims, dims, (size_t)rank * sizeof *dims) == 0);
}

bool assay_segment_fits(const assay_segment_t* s, int first, const assay_setting_t* setting) {
  if (s->first != first || s->apart != setting->apart ||
      !assay_sizes_same(&s->sizes, setting->sizes))
    return false;
  for (size_t i = 0; i < s->n_key; i++) {
    const assay_place_t* p = &s->places[s->key[i]];
    if (!is_of_shape(assay_value_slot_any(&setting->values[p->value->id]), p->rank, p->dims))
      return false;
  }
  return true;
}

// Finds the scratch memory that kernels need at the capacity of growing dimensions, by giving them
// those sizes and then their own back. *out_ok false: not even those, and the segment is lost.
static assay_status_t reserve_scratch(builder_t* b, bool* out_ok) {
  assay_setting_t largest = *b->in;
  builder_t at_capacity = {.in = &largest, .s = b->s};
  bool fits;  // where sizes cannot be all at their capacity, scratch grows with them
  largest.sizes = &b->at_capacity;
  assay_status_t st = segment_give_sizes(&at_capacity, true, &fits);
  assay_implied_deinit(&at_capacity.implied);
  if (st) return st;
  return segment_give_sizes(b, false, out_ok);
}

// *out_ok false: with what was asked for it cannot be had.
static assay_status_t create(const assay_setting_t* setting, int first, bool appends, bool reserves,
                             bool* out_ok, assay_segment_t** out) {
  builder_t b = {.in = setting, .span = first};
  *out_ok = true;
  ASSAY_TRY(ASSAY_NEW(&b.s));
  b.s->first = b.s->end = first;
  b.s->apart = setting->apart;
  b.s->appends = appends;
  assay_status_t st = segment_build(&b);
  if (appends && !st)
    *out_ok = !b.conflict && b.s->end == (int)setting->layers->n_layers && segment_has_capacity(&b);
  if (!st && *out_ok && b.s->grows && reserves) st = reserve_scratch(&b, out_ok);
  segment_survey_end(&b);
  if (st || !*out_ok) return assay_segment_destroy(b.s), st;
  *out = b.s;
  return NULL;
}

// Chooses kernels for all layers and drops them.
static assay_status_t rehearse(const assay_setting_t* setting, int first) {
  builder_t b = {.in = setting, .span = first};
  assay_status_t st = ASSAY_NEW(&b.s);
  if (st) return st;
  b.s->first = b.s->end = first;
  b.s->apart = setting->apart;
  st = segment_begin(&b);
  if (!st) st = segment_rehearse_pairs(&b);
  if (!st) st = segment_rehearse_joints(&b);
  if (!st) st = segment_rehearse_siblings(&b);
  segment_survey_end(&b);
  assay_segment_destroy(b.s);
  return st;
}

assay_status_t assay_segment_create(const assay_setting_t* setting, int first,
                                    assay_segment_t** out) {
  const assay_target_t* target = setting->target;
  bool ok = false;
  if (target->rehearse && target->rehearse(setting->user)) {
    assay_status_t st = rehearse(setting, first);
    // Its end is told in any case.
    ASSAY_TRY(assay_status_join(st, target->rehearsed(setting->user)));
  }
  const bool appends = setting->n_appends && setting->n_growth && !setting->apart && first == 0;
  if (appends) ASSAY_TRY(create(setting, first, true, true, &ok, out));
  if (!ok) ASSAY_TRY(create(setting, first, false, true, &ok, out));
  return ok ? NULL : create(setting, first, false, false, &ok, out);
}
