// Two layers in one launch.
#include <math.h>
#include <string.h>

#include "exec/choice/choice_times.h"
#include "exec/choice/signature.h"

// Both layers as one that has the operands of a kernel for both.
static void join(const assay_layer_pair_t* p, assay_sized_layer_t* out) {
  const assay_sized_layer_t* second = p->layers[1];
  *out = *p->layers[0];
  memcpy(out->in + out->n_in, second->in, second->n_in * sizeof *second->in);
  out->n_in += second->n_in;
  out->out[1] = second->out[0];
  out->n_out = 2;
}

static assay_status_t print_signature(const assay_layer_pair_t* p, assay_str_t* out) {
  ASSAY_TRY(assay_layer_signature(p->layers[0], out));
  assay_str_append(out, " before ");
  return assay_layer_signature(p->layers[1], out);
}

// What a pair of layers takes by a kernel of that name; false: it is not known.
static assay_status_t find_time(const assay_choice_t* c, const assay_layer_pair_t* p,
                                const char* name, double* out, bool* found) {
  assay_str_t signature = {0};
  assay_status_t st = print_signature(p, &signature);
  *found = !st && assay_timings_find(c->timings, name, assay_str_get(&signature), out);
  assay_str_deinit(&signature);
  return st;
}

static assay_status_t measure(assay_choice_t* c, const assay_layer_pair_t* p, assay_kernel_t* k,
                              double* out) {
  assay_str_t signature = {0};
  assay_sized_layer_t both;
  join(p, &both);
  assay_status_t st = print_signature(p, &signature);
  if (!st) st = c->setting.time(c->setting.user, &both, k, c->runs, out);
  if (!st) st = assay_timings_add(c->timings, k->name, assay_str_get(&signature), *out);
  c->measured = true;
  assay_str_deinit(&signature);
  return st;
}

// Whether it is faster than the two kernels, as far as these are known.
static assay_status_t pays(assay_choice_t* c, const assay_layer_pair_t* p, double together,
                           bool* out) {
  double apart = 0;
  for (int i = 0; i < 2; i++) {
    double us = (double)NAN;
    ASSAY_TRY(assay_choice_cost(c, p->layers[i], p->kernels[i], &us));
    apart += us;
  }
  *out = !(together >= apart);
  return NULL;
}

// A kernel that was asked for is the one that runs its layer.
static assay_status_t is_forced(assay_choice_t* c, const assay_layer_pair_t* p, bool* out) {
  *out = false;
  for (int i = 0; !*out && i < 2; i++) {
    assay_way_t forced;
    ASSAY_TRY(assay_way_forced(c, p->layers[i], &forced));
    *out = forced.tactic != NULL;
  }
  return NULL;
}

// By one tactic. A kernel that is known not to pay is not made: plans would keep its code.
static assay_status_t choose(assay_choice_t* c, const assay_layer_pair_t* p,
                             const assay_tactic_t* tactic, assay_kernel_t** out) {
  double us = (double)NAN;
  bool known, worth = true;
  ASSAY_TRY(find_time(c, p, tactic->name, &us, &known));
  if (known && !c->rehearses) ASSAY_TRY(pays(c, p, us, &worth));
  if (worth) ASSAY_TRY(tactic->make_pair(p, out));
  if (!*out) return NULL;
  (*out)->tactic = tactic;
  (*out)->name = tactic->name;
  (*out)->numerics = tactic->numerics;
  if (known || !c->measure || c->rehearses) return NULL;
  assay_status_t st = measure(c, p, *out, &us);
  if (!st) st = pays(c, p, us, &worth);
  if (!st && worth) return NULL;
  (*out)->destroy(*out);
  *out = NULL;
  return st;
}

assay_status_t assay_choose_pair(assay_choice_t* c, const assay_layer_pair_t* p,
                                 assay_kernel_t** out) {
  bool forced;
  *out = NULL;
  if (p->layers[0]->n_in + p->layers[1]->n_in > ASSAY_KERNEL_OPERANDS) return NULL;
  ASSAY_TRY(is_forced(c, p, &forced));
  for (size_t t = 0; !forced && !*out && t < c->setting.n_tactics; t++) {
    const assay_tactic_t* tactic = c->setting.tactics[t];
    if (tactic->make_pair && (!p->views || tactic->pairs_views) && assay_ways_allow(c, tactic))
      ASSAY_TRY(choose(c, p, tactic, out));
  }
  return NULL;
}
