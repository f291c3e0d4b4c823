// The two fixes that a user can choose from, and how long a run with each is likely to take.
#include "check/fix_front.h"

#include <math.h>

#include "base/alloc.h"
#include "plan/roofline.h"

// ---- time ---------------------------------------------------------------------------------------

static bool is_kept(const assay_plan_t* plan, const assay_layer_t* layer, const assay_fix_t* fix) {
  for (size_t k = 0; k < layer->n_nodes; k++) {
    const assay_origins_t o = assay_plan_origins(plan, &layer->nodes[k]);
    for (size_t i = 0; i < o.n; i++)
      for (size_t m = 0; m < fix->n_nodes; m++)
        if (fix->nodes[m] == o.nodes[i]) return true;
  }
  return false;
}

static bool multiplies(const assay_layer_t* layer) {
  for (size_t k = 0; k < layer->n_nodes; k++)
    if (layer->nodes[k]->op && layer->nodes[k]->op->flags & ASSAY_OP_CONTRACTS) return true;
  return false;
}

// The most of what arithmetic and memory take on the default device; costs are those of float32.
static double time_of(const assay_layer_account_t* a, assay_format_t format) {
  const assay_device_roofline_t* d = assay_device_roofline(0);
  const double bits = format == ASSAY_FORMAT_NONE ? 32 : assay_format_info(format)->bits;
  const double rate = multiplies(a->layer)
                          ? assay_device_roofline_rate(d, format ? format : ASSAY_FORMAT_FP32)
                          : d->fp32;
  return fmax(a->cost.flops / (rate * 1e12), a->cost.bytes * bits / 32 / (d->gigabytes * 1e9));
}

// Over the time of all in fp32; 0: nothing is known.
static double part_of_time(const assay_plan_t* plan, const assay_account_t* account,
                           const assay_fix_t* fix) {
  double time = 0, wide = 0;
  for (size_t i = 0; account && i < assay_account_layer_count(account); i++) {
    const assay_layer_account_t* a = assay_account_layer(account, i);
    if (!a->layer) continue;
    const double in_fp32 = time_of(a, ASSAY_FORMAT_FP32);
    time += is_kept(plan, a->layer, fix) ? in_fp32 : time_of(a, a->layer->format);
    wide += in_fp32;
  }
  return wide > 0 ? time / wide : 0;
}

// ---- the front ----------------------------------------------------------------------------------

void assay_fix_front_take(assay_fix_choice_t choice, const assay_plan_t* plan,
                          const assay_account_t* account, assay_fewest_found_t* found,
                          assay_fix_front_t* out) {
  assay_fix_front_t f = {.chosen = choice};
  f.wide = found->wide;
  found->wide = NULL;
  if (choice == ASSAY_FIX_ANY || !f.wide) {
    *out = f;
    return;
  }
  f.has_best = found->has_best || found->best_is_fewest;
  f.differ = found->has_best;
  f.time_fewest = part_of_time(plan, account, &found->fix);
  f.time_best = f.differ ? part_of_time(plan, account, &found->best) : f.time_fewest;
  if (!f.has_best) f.chosen = ASSAY_FIX_FEWEST;
  f.other = found->best;
  if (f.differ && choice == ASSAY_FIX_BEST) {
    f.other = found->fix;
    found->fix = found->best;
  }
  found->best = (assay_fix_t){0};
  *out = f;
}

bool assay_fix_front_is_ill(const assay_output_check_t* wide) {
  static const double AMPLIFIED = 1024;  // 10 of 24 bits are lost, and with them what is required
  if (!wide || wide->faithful || !wide->is_float || wide->error.mismatched) return false;
  const double explained = AMPLIFIED * ldexp(1, -24);
  return wide->error.sum_err2 > explained * explained * wide->error.sum_ref2;
}

void assay_fix_front_deinit(assay_fix_front_t* f) {
  assay_fix_deinit(&f->other);
  assay_free(f->wide);
  *f = (assay_fix_front_t){0};
}

const assay_fix_t* assay_fix_front_get(const assay_fix_front_t* f, const assay_fix_t* chosen,
                                       assay_fix_choice_t which) {
  if (f->chosen == ASSAY_FIX_ANY) return which == ASSAY_FIX_FEWEST ? chosen : NULL;
  if (which == ASSAY_FIX_BEST && !f->has_best) return NULL;
  return f->differ && which != f->chosen ? &f->other : chosen;
}

double assay_fix_front_time(const assay_fix_front_t* f, assay_fix_choice_t which) {
  return which == ASSAY_FIX_BEST ? f->time_best : f->time_fewest;
}
