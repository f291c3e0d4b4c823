// Statistics of outputs in parts of the samples: as bytes, and joined to those of the samples
// before them.
#include <math.h>
#include <stdio.h>

#include "account/outputs.h"
#include "base/alloc.h"

// ---- joining ------------------------------------------------------------------------------------

static void join_steps(assay_output_check_t* o, const assay_output_check_t* more) {
  o->steps.n += more->steps.n;
  if (more->steps.largest > o->steps.largest) o->steps.largest = more->steps.largest;
  assay_exact_join_to(&o->sums.difference2, &o->steps.difference2, &more->sums.difference2);
  assay_exact_join_to(&o->sums.sum, &o->steps.sum, &more->sums.sum);
  assay_exact_join_to(&o->sums.sum2, &o->steps.sum2, &more->sums.sum2);
}

// A part that once could not be taken is held against golden no more.
static void join_golden(assay_output_check_t* o, const assay_output_check_t* more) {
  o->golden_used += more->golden_used;
  o->golden_rows += more->golden_rows;
  if (more->golden_why[0]) snprintf(o->golden_why, sizeof o->golden_why, "%s", more->golden_why);
  if (o->part_why[0]) return;
  assay_error_exact_join(&o->sums.golden, &o->golden, &more->sums.golden, &more->golden);
  assay_error_exact_join(&o->sums.engine_golden, &o->engine_golden, &more->sums.engine_golden,
                         &more->engine_golden);
  o->has_golden |= more->has_golden;
  o->golden_samples += more->golden_samples;
  o->unfinite_as_golden += more->unfinite_as_golden;
  o->bits_of += more->bits_of;
  o->bits_differ += more->bits_differ;
  if (more->bits_ulps > o->bits_ulps) o->bits_ulps = more->bits_ulps;
}

static void join(assay_output_check_t* o, const assay_output_check_t* more) {
  assay_error_exact_join(&o->sums.error, &o->error, &more->sums.error, &more->error);
  join_golden(o, more);
  join_steps(o, more);
  if (more->part_why[0]) snprintf(o->part_why, sizeof o->part_why, "%s", more->part_why);
  o->is_float |= more->is_float;
  o->unfinite_in |= more->unfinite_in;
  o->differing += more->differing;
  o->rows += more->rows;
  o->top1 += more->top1;
  o->top5 += more->top5;
  o->samples += more->samples;
  o->elements += more->elements;
}

void assay_outputs_keep_slices(assay_output_check_t* outputs, size_t n) {
  for (size_t i = 0; i < n; i++)
    if (outputs[i].slices) assay_slices_keep_all(outputs[i].slices);
}

// ---- packing ------------------------------------------------------------------------------------

static void pack(assay_packing_t* p, assay_output_check_t* o) {
  int64_t* const counts[] = {
      &o->differing,          &o->rows,        &o->top1,        &o->top5,        &o->samples,
      &o->elements,           &o->bits_of,     &o->bits_differ, &o->golden_used, &o->golden_samples,
      &o->unfinite_as_golden, &o->golden_rows, &o->steps.n};
  bool* const flags[] = {&o->is_float, &o->unfinite_in, &o->has_golden};
  for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) assay_pack_tally(p, counts[i]);
  assay_pack_i64(p, &o->bits_ulps);
  assay_pack_i64(p, &o->steps.largest);
  for (size_t i = 0; i < sizeof flags / sizeof *flags; i++) assay_pack_bool(p, flags[i]);
  assay_error_exact_pack(p, &o->sums.error, &o->error);
  assay_error_exact_pack(p, &o->sums.golden, &o->golden);
  assay_error_exact_pack(p, &o->sums.engine_golden, &o->engine_golden);
  assay_exact_pack(p, &o->sums.difference2);
  assay_exact_pack(p, &o->sums.sum);
  assay_exact_pack(p, &o->sums.sum2);
  assay_pack_text(p, o->golden_why, sizeof o->golden_why);
  assay_pack_text(p, o->part_why, sizeof o->part_why);
}

assay_status_t assay_outputs_save_part(const assay_output_check_t* outputs, size_t n,
                                       assay_packing_t* to) {
  for (size_t i = 0; i < n; i++) {
    assay_output_check_t o = outputs[i];
    bool slices = o.slices != NULL;
    pack(to, &o);
    for (size_t k = 0; k < o.n_parts; k++) {
      assay_output_check_t part = o.parts[k];
      pack(to, &part);
    }
    assay_pack_bool(to, &slices);
    if (slices) ASSAY_TRY(assay_slices_pack(to, o.slices));
  }
  return to->to->failed ? assay_str_status(to->to) : NULL;
}

static assay_status_t add_slices(assay_output_check_t* o, assay_packing_t* from) {
  bool has = false;
  assay_slices_t* more = NULL;
  assay_pack_bool(from, &has);
  if (has != (o->slices != NULL)) from->failed = true;
  if (from->failed || !has) return NULL;
  ASSAY_TRY(assay_slices_create(&more));
  assay_status_t st = assay_slices_pack(from, more);
  if (!st && !from->failed) st = assay_slices_join(o->slices, more);
  assay_slices_destroy(more);
  return st;
}

assay_status_t assay_outputs_add_part(assay_output_check_t* outputs, size_t n,
                                      assay_packing_t* from) {
  assay_output_check_t* more = NULL;
  ASSAY_TRY(ASSAY_NEW(&more));
  assay_status_t st = NULL;
  for (size_t i = 0; !st && !from->failed && i < n; i++) {
    for (size_t k = 0; k <= outputs[i].n_parts && !from->failed; k++) {
      pack(from, more);
      if (!from->failed) join(k ? &outputs[i].parts[k - 1] : &outputs[i], more);
    }
    if (!from->failed) st = add_slices(&outputs[i], from);
  }
  assay_free(more);
  return st;
}
