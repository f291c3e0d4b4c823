// Several layers that read the same in one launch: which ways of a tactic compete by time, and with
// a launch each.
#include <math.h>

#include "exec/choice/choice_times.h"
#include "exec/choice/signature.h"

bool assay_are_siblings(const assay_choice_t* c, const assay_layer_t* a, const assay_layer_t* b) {
  for (size_t t = 0; t < c->setting.n_tactics; t++) {
    const assay_tactic_t* tactic = c->setting.tactics[t];
    if (tactic->make_siblings && assay_ways_allow(c, tactic) && tactic->are_siblings(a, b))
      return true;
  }
  return false;
}

// A kernel that was asked for is the one that runs its layer.
static assay_status_t is_forced(assay_choice_t* c, const assay_siblings_t* s, bool* out) {
  *out = false;
  for (int i = 0; !*out && i < s->n; i++) {
    assay_way_t forced;
    ASSAY_TRY(assay_way_forced(c, s->layers[i], &forced));
    *out = forced.tactic != NULL;
  }
  return NULL;
}

static bool takes_all(const assay_tactic_t* tactic, const assay_siblings_t* s) {
  bool all = true;
  for (int i = 1; i < s->n; i++)
    all &= tactic->are_siblings(s->layers[0]->layer, s->layers[i]->layer);
  return all;
}

// ---- times --------------------------------------------------------------------------------------

static assay_status_t print_signature(const assay_siblings_t* s, assay_str_t* out) {
  for (int i = 0; i < s->n; i++) {
    if (i) assay_str_append(out, " beside ");
    ASSAY_TRY(assay_layer_signature(s->layers[i], out));
  }
  return NULL;
}

// All of them as one that has the operands of a kernel for all.
static void join(const assay_siblings_t* s, assay_sized_layer_t* out) {
  *out = *s->layers[0];
  for (int i = 1; i < s->n; i++) out->out[i] = s->layers[i]->out[0];
  out->n_out = (size_t)s->n;
}

// What a kernel of all takes; NAN: it is not known.
static assay_status_t find_time(assay_choice_t* c, const assay_siblings_t* s, const char* signature,
                                assay_kernel_t* k, double* out) {
  assay_sized_layer_t all;
  *out = (double)NAN;
  if (assay_timings_find(c->timings, k->name, signature, out) || !c->measure || c->rehearses)
    return NULL;
  join(s, &all);
  ASSAY_TRY(c->setting.time(c->setting.user, &all, k, c->runs, out));
  c->measured = true;
  return assay_timings_add(c->timings, k->name, signature, *out);
}

// Whether it is faster than a launch each, as far as these are known.
static assay_status_t pays(assay_choice_t* c, const assay_siblings_t* s, double together,
                           bool* out) {
  double apart = 0;
  for (int i = 0; i < s->n; i++) {
    double us = (double)NAN;
    ASSAY_TRY(assay_choice_cost(c, s->layers[i], s->kernels[i], &us));
    apart += us;
  }
  *out = !(together >= apart);
  return NULL;
}

// ---- kernels ------------------------------------------------------------------------------------

static void drop(assay_kernel_t** k) {
  if (*k) (*k)->destroy(*k);
  *k = NULL;
}

// The fastest way of a tactic, or its first one where times are not known.
static assay_status_t choose_way(assay_choice_t* c, const assay_siblings_t* s,
                                 const char* signature, const assay_tactic_t* tactic,
                                 double* out_us, assay_kernel_t** out) {
  assay_kernel_t* k = NULL;
  for (int way = 0;; way++) {
    double us;
    ASSAY_TRY(tactic->make_siblings(s, way, &k));
    if (!k) return NULL;
    k->tactic = tactic;
    k->numerics = tactic->numerics;
    assay_status_t st = find_time(c, s, signature, k, &us);
    if (st) return drop(&k), st;
    if (!*out || us < *out_us) {
      drop(out);
      *out = k;
      *out_us = us;
      k = NULL;
    }
    drop(&k);
  }
}

static assay_status_t choose(assay_choice_t* c, const assay_siblings_t* s,
                             const assay_tactic_t* tactic, assay_kernel_t** out) {
  assay_str_t signature = {0};
  double us = (double)NAN;
  bool worth = true;
  assay_status_t st = print_signature(s, &signature);
  if (!st) st = assay_str_status(&signature);
  if (!st) st = choose_way(c, s, assay_str_get(&signature), tactic, &us, out);
  if (!st && *out) st = pays(c, s, us, &worth);
  if (st || !worth) drop(out);
  assay_str_deinit(&signature);
  return st;
}

assay_status_t assay_choose_siblings(assay_choice_t* c, const assay_siblings_t* s,
                                     assay_kernel_t** out) {
  bool forced;
  *out = NULL;
  ASSAY_TRY(is_forced(c, s, &forced));
  for (size_t t = 0; !forced && !*out && t < c->setting.n_tactics; t++) {
    const assay_tactic_t* tactic = c->setting.tactics[t];
    if (tactic->make_siblings && assay_ways_allow(c, tactic) && takes_all(tactic, s))
      ASSAY_TRY(choose(c, s, tactic, out));
  }
  return NULL;
}
