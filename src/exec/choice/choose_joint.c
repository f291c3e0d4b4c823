// Several layers in the launch of the last one.
#include <math.h>
#include <string.h>

#include "exec/choice/choice_times.h"
#include "exec/choice/signature.h"

bool assay_may_join(const assay_choice_t* c, const assay_layer_t* l) {
  for (size_t t = 0; t < c->setting.n_tactics; t++) {
    const assay_tactic_t* tactic = c->setting.tactics[t];
    if (tactic->make_joint && assay_ways_allow(c, tactic) && tactic->ends(l)) return true;
  }
  return false;
}

// A kernel that was asked for is the one that runs its layer.
static assay_status_t is_forced(assay_choice_t* c, const assay_joint_layers_t* j, bool* out) {
  *out = false;
  for (int i = 0; !*out && i < j->n; i++) {
    assay_way_t forced;
    ASSAY_TRY(assay_way_forced(c, j->layers[i], &forced));
    *out = forced.tactic != NULL;
  }
  return NULL;
}

// ---- times --------------------------------------------------------------------------------------

// All layers as one that has the operands of a kernel for them.
static void join(const assay_joint_layers_t* j, assay_sized_layer_t* out) {
  *out = *j->layers[0];
  for (int i = 1; i < j->n; i++) {
    const assay_sized_layer_t* l = j->layers[i];
    memcpy(out->in + out->n_in, l->in, l->n_in * sizeof *l->in);
    out->n_in += l->n_in;
  }
}

static assay_status_t print_signature(const assay_joint_layers_t* j, assay_str_t* out) {
  for (int i = 0; i < j->n; i++) {
    if (i) assay_str_append(out, " behind ");
    ASSAY_TRY(assay_layer_signature(j->layers[i], out));
  }
  return assay_str_status(out);
}

static assay_status_t find_time(const assay_choice_t* c, const assay_joint_layers_t* j,
                                const char* name, double* out, bool* found) {
  assay_str_t signature = {0};
  assay_status_t st = print_signature(j, &signature);
  *found = !st && assay_timings_find(c->timings, name, assay_str_get(&signature), out);
  assay_str_deinit(&signature);
  return st;
}

static assay_status_t measure(assay_choice_t* c, const assay_joint_layers_t* j, assay_kernel_t* k,
                              double* out) {
  assay_str_t signature = {0};
  assay_sized_layer_t all;
  join(j, &all);
  assay_status_t st = print_signature(j, &signature);
  if (!st) st = c->setting.time(c->setting.user, &all, k, c->runs, out);
  if (!st) st = assay_timings_add(c->timings, k->name, assay_str_get(&signature), *out);
  c->measured = true;
  assay_str_deinit(&signature);
  return st;
}

// Whether it is faster than the kernels of all layers, as far as these are known.
static assay_status_t pays(assay_choice_t* c, const assay_joint_layers_t* j, double together,
                           bool* out) {
  double apart = 0;
  for (int i = 0; i < j->n; i++) {
    double us = (double)NAN;
    ASSAY_TRY(assay_choice_cost(c, j->layers[i], j->kernels[i], &us));
    apart += us;
  }
  *out = !(together >= apart);
  return NULL;
}

// ---- choosing -----------------------------------------------------------------------------------

// The layers that a tactic takes; *out false: there are none, or a kernel was asked for of one.
static assay_status_t find_layers(assay_choice_t* c, assay_joint_layers_t* j,
                                  const assay_tactic_t* tactic, bool* out) {
  assay_kernel_t* none = NULL;
  bool forced = false;
  j->n = 1;
  j->finds = true;
  assay_status_t st = tactic->make_joint(j, &none);
  j->finds = false;
  if (!st && j->n > 1) st = is_forced(c, j, &forced);
  *out = !st && j->n > 1 && !forced;
  return st;
}

// By one tactic. A kernel that is known not to pay is not made: plans would keep its code.
static assay_status_t choose(assay_choice_t* c, assay_joint_layers_t* j,
                             const assay_tactic_t* tactic, assay_kernel_t** out) {
  double us = (double)NAN;
  bool known, worth;
  ASSAY_TRY(find_layers(c, j, tactic, &worth));
  if (!worth) return NULL;
  ASSAY_TRY(find_time(c, j, tactic->name, &us, &known));
  if (known && !c->rehearses) ASSAY_TRY(pays(c, j, us, &worth));
  if (!worth) return NULL;
  j->n = 1;
  ASSAY_TRY(tactic->make_joint(j, out));
  if (!*out) return NULL;
  (*out)->tactic = tactic;
  (*out)->name = tactic->name;
  (*out)->numerics = tactic->numerics;
  if (known || !c->measure || c->rehearses) return NULL;
  assay_status_t st = measure(c, j, *out, &us);
  if (!st) st = pays(c, j, us, &worth);
  if (!st && worth) return NULL;
  (*out)->destroy(*out);
  *out = NULL;
  return st;
}

assay_status_t assay_choose_joint(assay_choice_t* c, assay_joint_layers_t* j,
                                  assay_kernel_t** out) {
  *out = NULL;
  for (size_t t = 0; !*out && t < c->setting.n_tactics; t++) {
    const assay_tactic_t* tactic = c->setting.tactics[t];
    if (tactic->make_joint && assay_ways_allow(c, tactic) && tactic->ends(j->layers[0]->layer))
      ASSAY_TRY(choose(c, j, tactic, out));
  }
  return NULL;
}
