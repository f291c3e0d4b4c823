// Biases of integers that layers of unlike scales share.
#include "diagnose/outputs/bias_sets.h"

#include <math.h>

#include "base/clock.h"
#include "diagnose/causes/shared_bias.h"
#include "diagnose/search_trial.h"

static const char CAUSE[] = "shared bias";

// A set that leaves more than this of the difference is not the way. That the integers of all
// layers but one are wrong is certain; what the quantizer's own rounding leaves is not theirs, so
// much less than all of the difference is enough.
static const double HELPS = 0.9, ENOUGH = 0.25;

typedef struct bias_set {
  assay_repair_t at[ASSAY_SEARCH_FAULTS];
  size_t n;
} bias_set_t;

static void set_deinit(bias_set_t* set) {
  for (size_t i = 0; i < set->n; i++) assay_repair_deinit(&set->at[i]);
  set->n = 0;
}

static bool takes_part(const assay_search_t* s, const assay_node_t* n) {
  for (size_t i = 0; i < s->n_nodes; i++)
    if (s->nodes[i] == n) return true;
  return false;
}

// Adds the repairs of all layers but the owner. False: there are none, or too many.
static assay_status_t add_layers(const assay_search_t* s, const assay_node_t* const* layers,
                                 size_t n, const assay_node_t* owner, bias_set_t* set, bool* out) {
  const size_t before = set->n;
  for (size_t i = 0; i < n; i++) {
    bool made = false;
    if (!takes_part(s, layers[i])) continue;
    *out = set->n < ASSAY_SEARCH_FAULTS;
    if (!*out) return NULL;
    ASSAY_TRY(assay_shared_bias_repair(layers[i], owner, CAUSE, &set->at[set->n], &made));
    set->n += made;
  }
  *out = set->n > before;
  return NULL;
}

// What a set leaves of the difference; *out_restored: golden, within what is explained.
static assay_status_t run(const assay_search_t* of, const bias_set_t* set, double* out_remains,
                          bool* out_restored) {
  assay_search_t s = *of;
  assay_trials_t trials;
  bool fits = false;
  for (s.n_adopted = 0; s.n_adopted < set->n; s.n_adopted++)
    s.adopted[s.n_adopted] = &set->at[s.n_adopted];
  s.n_others = 0;
  ASSAY_TRY(assay_trials_init(&s, &trials));
  assay_status_t st = assay_trials_evaluate_adopted(&trials, out_restored, &fits);
  *out_remains = fits ? trials.remains : (double)INFINITY;
  *out_restored = fits && *out_restored;
  assay_trials_deinit(&trials);
  return st;
}

// Adds the layers of one bias to a set: with the owner that leaves least, if that helps.
static assay_status_t choose_owner(const assay_search_t* s, const assay_node_t* const* layers,
                                   size_t n, bias_set_t* set, double* remains, bool* restored) {
  const size_t before = set->n;
  const assay_node_t* best = NULL;
  double least = HELPS * *remains;
  bool added = false;
  for (size_t i = 0; i < n; i++) {
    double left = INFINITY;
    bool is_restored = false;
    assay_status_t st = add_layers(s, layers, n, layers[i], set, &added);
    if (!st && added) st = run(s, set, &left, &is_restored);
    while (set->n > before) assay_repair_deinit(&set->at[--set->n]);
    if (st) return st;
    if (!added || !(left < least)) continue;
    least = left;
    best = layers[i];
    *restored = is_restored;
  }
  if (!best) return NULL;
  *remains = least;
  return add_layers(s, layers, n, best, set, &added);
}

static assay_status_t find(const assay_search_t* s, const assay_surroundings_t* around,
                           bias_set_t* set, double* remains, bool* restored) {
  for (size_t i = 0; i < s->n_nodes && assay_clock_seconds() < s->deadline; i++) {
    const assay_node_t* const* layers = NULL;
    const size_t n = assay_shared_bias_layers(around, s->nodes[i], &layers);
    // Each bias once, at the first layer that takes part.
    bool first = n > 0;
    for (size_t k = 0; first && k < i; k++) {
      const assay_node_t* const* others = NULL;
      first = !assay_shared_bias_layers(around, s->nodes[k], &others) || others != layers;
    }
    if (first) ASSAY_TRY(choose_owner(s, layers, n, set, remains, restored));
  }
  return NULL;
}

assay_status_t assay_search_bias_sets(const assay_search_t* s, const assay_surroundings_t* around,
                                      assay_fault_t* out, size_t* out_n) {
  bias_set_t set = {.n = 0};
  double remains = 1, left = 0;
  bool restored = false;
  *out_n = 0;
  assay_status_t st = find(s, around, &set, &remains, &restored);
  bool holds = set.n && (restored || remains < ENOUGH);
  for (size_t k = 0; !st && holds && k < s->n_others; k++) {
    bool other = false;
    st = run(&s->others[k], &set, &left, &other);
    holds = other || left < ENOUGH;
  }
  for (size_t i = 0; !st && holds && i < set.n; i++) {
    out[i] = (assay_fault_t){
        .node = set.at[i].node, .has_repair = true, .restored = true, .remains = remains};
    st = assay_repair_copy(&set.at[i], &out[i].repair);
    if (!st) *out_n = i + 1;
  }
  set_deinit(&set);
  return st;
}
