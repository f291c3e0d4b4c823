// Whether golden is of the network before its weights were rounded.
#include "diagnose/kinds/rounded_find.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/kinds/rounded_without.h"

enum { DRAWS = 4 };

// Squares: golden differs by so much less or more than the draws do on average, and so much less or
// more than the draws among themselves, which few independent numbers make unlike.
static const double LESS = 1.0 / 25, MORE = 9, LESS_OF_DRAWS = 0.25, MORE_OF_DRAWS = 4;

// A part of golden's square from which on draws show something, and what roundings of float32 do.
static const double SHOWN = 1e-10, NOISE = 0x1p-42;

// What the draws did to a value: sums of squares.
typedef struct drawn {
  double sum, low, high;
} drawn_t;

typedef struct counts {
  size_t fits, less, more, other;
} counts_t;

static void count(const assay_golden_arithmetic_sums_t* s, const drawn_t* d, counts_t* c) {
  static const double FACTOR = 64;  // as the walk has it, squared
  const double mean = d->sum / DRAWS;
  if (!s->value || !(s->n > 0)) return;
  if (!(mean > SHOWN * s->ref)) {
    c->other += s->dd > FACTOR * mean + FACTOR * NOISE * s->ref;
    return;
  }
  // What is as far off as it is large is another value, whatever the draws do.
  const bool less = s->dd < fmin(LESS * mean, LESS_OF_DRAWS * d->low);
  const bool more = s->dd > fmin(fmax(MORE * mean, MORE_OF_DRAWS * d->high), s->ref);
  c->less += less;
  c->more += more;
  c->fits += !less && !more;
}

// With inner values each product tells by itself, and faults may be among them; with outputs alone
// all have to fit.
static assay_rounded_verdict_t judge(const counts_t* c, bool outputs_only) {
  if (!outputs_only) return c->fits > c->less + c->more ? ASSAY_ROUNDED_YES : ASSAY_ROUNDED_NO;
  if (c->less || c->other || !(c->fits || c->more)) return ASSAY_ROUNDED_NO;
  return c->more ? ASSAY_ROUNDED_MORE : ASSAY_ROUNDED_YES;
}

static assay_status_t draw_all(const assay_model_t* model, const assay_samples_t* inputs,
                               const assay_golden_t* golden, const assay_export_options_t* options,
                               assay_golden_arithmetic_probe_t* probe, drawn_t* drawn) {
  assay_export_options_t o = *options;
  o.no_search = true;
  o.probe = probe;
  for (o.draw = 1; o.draw <= DRAWS; o.draw++) {
    assay_export_t nothing = {0};
    memset(probe->at, 0, probe->n * sizeof *probe->at);
    assay_status_t st = assay_chain_run(model, inputs, golden, &o, &nothing);
    assay_export_deinit(&nothing);
    if (st) return st;
    for (size_t i = 0; i < probe->n; i++) {
      const double ee = probe->at[i].ee;
      drawn[i].sum += ee;
      drawn[i].low = o.draw == 1 ? ee : fmin(drawn[i].low, ee);
      drawn[i].high = fmax(drawn[i].high, ee);
    }
  }
  return NULL;
}

static bool has_outputs_only(const assay_golden_t* golden) {
  for (size_t i = 0; i < golden->n; i++)
    if (golden->at[i].value && !golden->at[i].value->is_output) return false;
  return true;
}

assay_status_t assay_rounded_find(const assay_model_t* model, const assay_samples_t* inputs,
                                  const assay_golden_t* golden,
                                  const assay_export_options_t* options,
                                  assay_rounded_weights_t* out,
                                  assay_rounded_verdict_t* out_verdict) {
  assay_golden_arithmetic_probe_t probe = {.n = (size_t)model->n_values};
  assay_export_options_t o = *options;
  drawn_t* drawn = NULL;
  counts_t counts = {0};
  *out_verdict = ASSAY_ROUNDED_NO;
  ASSAY_TRY(assay_rounded_list(model, out));
  bool exact = false;
  if (!out->n && !out->n_before) return assay_rounded_deinit(out), NULL;
  assay_status_t st = assay_rounded_without(model, inputs, golden, options, out, &exact);
  if (exact) *out_verdict = ASSAY_ROUNDED_EXACT;
  if (st) assay_rounded_deinit(out);
  if (st || exact) return st;
  o.rounded = out;
  st = assay_new_array(probe.n, sizeof *probe.at, &probe.at);
  if (!st) st = assay_new_array(probe.n, sizeof *drawn, &drawn);
  if (!st) st = draw_all(model, inputs, golden, &o, &probe, drawn);
  for (size_t i = 0; !st && i < probe.n; i++) count(&probe.at[i], &drawn[i], &counts);
  if (!st) *out_verdict = judge(&counts, has_outputs_only(golden));
  assay_free(probe.at);
  assay_free(drawn);
  if (st || !*out_verdict) assay_rounded_deinit(out);
  // A model that does not run so is judged by the check, not here.
  if (st && assay_status_code(st) != ASSAY_NO_MEMORY) assay_status_free(st), st = NULL;
  return st;
}
