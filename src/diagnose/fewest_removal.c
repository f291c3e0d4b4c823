// Takes layers out of a set that does, as long as it still does: the last part of the search for
// the fewest layers in higher precision (fewest.h).
#include <math.h>

#include "base/alloc.h"
#include "diagnose/fewest_strategies.h"
#include "formats/format.h"

enum { WITH_COMMANDS = 8, NEAR_WIDE = 24, FEW = 16 };  // FEW: units, for all smaller sets

// A layer of the plan as asked: nodes [first, first + n) of the state's.
typedef struct unit {
  size_t first, n;
  double need;  // how much the outputs are likely to need it
  bool passes;  // its values pass the format's range
  bool kept;    // in the best set so far
} unit_t;

typedef struct state {
  int* ids;       // of nodes
  unit_t* units;  // those in a low format or in the set, least needed first
  size_t n_ids, n_units;
  size_t n_kept, n_fixed;  // units in the best set; others that never leave it
  size_t n_runs, max_runs;
  // Groups: units of the set as it was found, by rank; those before `first` have been decided on.
  size_t *order, n_order, first, group, n_without;
  // Smaller sets: the units of the one that is tried, by their place from the end.
  bool smaller;
  size_t *place, n_place;
} state_t;

static void free_state(void* state) {
  state_t* s = state;
  assay_free(s->ids);
  assay_free(s->units);
  assay_free(s->order);
  assay_free(s->place);
}

// ---- the units ----------------------------------------------------------------------------------

static bool is_low(const assay_layer_t* l) {
  return l->format != ASSAY_FORMAT_NONE && assay_format_info(l->format)->bits < 32;
}

static const assay_layer_account_t* account_of(const assay_fewest_t* f, const assay_layer_t* l) {
  return f->subject.account ? assay_account_of_node(f->subject.account, l->nodes[l->n_nodes - 1])
                            : NULL;
}

static bool passes_range(const assay_fewest_t* f, const assay_layer_t* l) {
  const assay_layer_account_t* a = account_of(f, l);
  const double max = assay_format_info(l->format)->max;
  return a && (a->truth_max > max || a->truth_max_in > max);
}

// Its share of the error; where that is not known, what the layer was seen to do to the numbers, or
// loses by storing them.
static double need_of(const assay_fewest_t* f, size_t layer) {
  const assay_layers_t* all = assay_plan_layers(f->subject.plan);
  const assay_layer_t* l = &all->layers[layer];
  const assay_node_t* last = l->nodes[l->n_nodes - 1];
  const assay_layer_account_t* a = account_of(f, l);
  if (f->setting->need) return layer < all->n_layers ? f->setting->need[layer] : 0;
  const double need = f->setting->shares ? assay_shares_of_layer(f->setting->shares, layer) : 0;
  if (!a) return need;
  const double own = a->own.sum_ref2 > 0 ? sqrt(a->own.sum_err2 / a->own.sum_ref2) : 0;
  const assay_storage_loss_t stored =
      last->n_outputs && last->outputs[0]
          ? assay_account_stored(f->subject.account, last->outputs[0])
          : (assay_storage_loss_t){0};
  const double lost = stored.rms > 0 ? stored.lost / stored.rms : 0;
  return need + 1e-3 * fmin(1, fmax(isfinite(own) ? own : 1, isfinite(lost) ? lost : 1));
}

// Adds a node to the last unit, once.
static void add_node(state_t* s, bool* seen, unit_t* u, int id) {
  if (seen[id]) return;
  seen[id] = true;
  s->ids[s->n_ids++] = id;
  u->n++;
}

static void add_unit(state_t* s, unit_t u) {
  if (!u.n) return;
  if (isinf(u.need)) {
    s->n_fixed += u.kept;
    return;
  }
  s->n_kept += u.kept;
  s->units[s->n_units++] = u;
}

// Of a layer in the set: its nodes that are. Of one that is not: all.
static void add_layer(assay_fewest_t* f, state_t* s, bool* seen, size_t layer) {
  const assay_layer_t* l = &assay_plan_layers(f->subject.plan)->layers[layer];
  unit_t u = {.first = s->n_ids};
  for (int pass = 0; pass < 2 && !u.n; pass++) {
    u.kept = pass == 0;
    if (!u.kept && !is_low(l)) return;
    for (size_t k = 0; k < l->n_nodes; k++) {
      const assay_origins_t o = assay_plan_origins(f->subject.plan, &l->nodes[k]);
      for (size_t i = 0; i < o.n; i++)
        if (!u.kept || f->set.chosen[o.nodes[i]->id]) add_node(s, seen, &u, o.nodes[i]->id);
    }
  }
  u.need = need_of(f, layer);
  u.passes = passes_range(f, l);
  add_unit(s, u);
}

static bool is_before(const unit_t* a, const unit_t* b) {
  return a->passes != b->passes ? b->passes : a->need < b->need;
}

// What passes the range comes last, before it what is needed most; among equals the last of the
// graph, which carries least on.
static void sort_units(state_t* s) {
  for (size_t i = 1; i < s->n_units; i++) {
    const unit_t u = s->units[i];
    size_t at = i;
    for (; at > 0 && !is_before(&s->units[at - 1], &u); at--) s->units[at] = s->units[at - 1];
    s->units[at] = u;
  }
}

// A fix that keeps much of the model is little better than a higher precision for all: some runs
// are worth it whatever they cost. How long a command of the user's takes nobody knows.
static size_t max_runs_of(const assay_fewest_t* f, bool many) {
  const assay_requirements_t* r = f->subject.require;
  size_t max = f->setting->max_removals;
  if (many && max < f->setting->min_removals) max = f->setting->min_removals;
  if (f->reference && max < NEAR_WIDE) max = NEAR_WIDE;
  return r && assay_require_has_commands(r) && max > WITH_COMMANDS ? WITH_COMMANDS : max;
}

// What passes the range is hardly ever in the set in vain: it is tried where runs cost little.
static void choose_order(assay_fewest_t* f, state_t* s, size_t n_layers) {
  s->max_runs = max_runs_of(f, 4 * s->n_kept > n_layers);
  const bool all = 4 * s->n_kept <= f->setting->max_removals || s->n_units <= FEW;
  for (size_t i = 0; i < s->n_units; i++)
    if (s->units[i].kept && (all || !s->units[i].passes)) s->order[s->n_order++] = i;
  s->group = s->n_order > 1 ? s->n_order / 2 : 1;
}

static assay_status_t make_units(assay_fewest_t* f, state_t* s) {
  const size_t n_nodes = (size_t)f->subject.model->n_node_ids;
  const size_t n_layers = f->subject.plan ? assay_plan_layers(f->subject.plan)->n_all_layers : 0;
  bool* seen = NULL;
  ASSAY_TRY(assay_new_array(n_nodes, sizeof *s->ids, &s->ids));
  ASSAY_TRY(assay_new_array(n_nodes, sizeof *s->units, &s->units));
  ASSAY_TRY(assay_new_array(n_nodes, sizeof *seen, &seen));
  for (size_t i = 0; i < n_layers; i++) add_layer(f, s, seen, i);
  for (size_t i = 0; i < n_nodes; i++) {  // of layers of other plans, or of none
    unit_t u = {.first = s->n_ids, .kept = true};
    if (f->set.chosen[i]) add_node(s, seen, &u, (int)i);
    add_unit(s, u);
  }
  assay_free(seen);
  sort_units(s);
  ASSAY_TRY(assay_new_array(s->n_units, sizeof *s->order, &s->order));
  ASSAY_TRY(assay_new_array(s->n_units, sizeof *s->place, &s->place));
  choose_order(f, s, n_layers);
  return NULL;
}

static void put(assay_fewest_t* f, const state_t* s, size_t unit, bool in) {
  const unit_t* u = &s->units[unit];
  for (size_t k = u->first; k < u->first + u->n; k++) {
    bool* chosen = &f->set.chosen[s->ids[k]];
    f->set.n_chosen += (size_t)(in && !*chosen);
    f->set.n_chosen -= (size_t)(!in && *chosen);
    *chosen = in;
  }
}

static void put_best(assay_fewest_t* f, const state_t* s) {
  for (size_t i = 0; i < s->n_units; i++) put(f, s, i, s->units[i].kept);
}

// ---- groups -------------------------------------------------------------------------------------

// The next group, half as large where the last one was needed and twice as large where it was not:
// one unit at a time where most are needed. The set is never left empty.
static bool propose_group(assay_fewest_t* f, state_t* s) {
  if (s->n_kept + s->n_fixed < 2 || s->first >= s->n_order) return false;
  const size_t left = s->n_order - s->first;
  s->n_without = s->group < left ? s->group : left;
  if (s->n_without == s->n_kept + s->n_fixed) s->n_without--;
  for (size_t i = 0; i < s->n_without; i++) put(f, s, s->order[s->first + i], false);
  return true;
}

static void learn_group(state_t* s, bool does) {
  if (does) {
    for (size_t i = 0; i < s->n_without; i++) s->units[s->order[s->first + i]].kept = false;
    s->n_kept -= s->n_without;
    s->first += s->n_without;
    s->group *= 2;
  } else if (s->n_without > 1) {
    s->group = s->n_without / 2;
  } else {
    s->first++;
  }
}

// ---- smaller sets -------------------------------------------------------------------------------

// How many sets of k of n units there are; more than `max`: max + 1.
static size_t count_sets(size_t n, size_t k, size_t max) {
  double count = 1;
  for (size_t i = 0; i < k && count <= (double)max; i++)
    count = count * (double)(n - i) / (double)(i + 1);
  return count > (double)max ? max + 1 : (size_t)(count + 0.5);
}

// Nothing else can stand for what passes the format's range.
static bool all_pass_range(const state_t* s) {
  for (size_t i = 0; i < s->n_units; i++)
    if (s->units[i].kept && !s->units[i].passes) return false;
  return true;
}

// Sets of so many units: those of the units that are needed most come first.
static bool first_set(state_t* s, size_t size) {
  if (!(size + s->n_fixed) || s->n_units > FEW || all_pass_range(s)) return false;
  s->n_place = size;
  const size_t left = s->max_runs - s->n_runs;
  if (count_sets(s->n_units, s->n_place, left) > left) return false;
  for (size_t i = 0; i < s->n_place; i++) s->place[i] = i;
  return true;
}

static bool next_set(state_t* s) {
  for (size_t i = s->n_place; i-- > 0;) {
    if (s->place[i] + (s->n_place - i) == s->n_units) continue;
    s->place[i]++;
    for (size_t k = i + 1; k < s->n_place; k++) s->place[k] = s->place[k - 1] + 1;
    return true;
  }
  return false;
}

static size_t unit_at(const state_t* s, size_t i) { return s->n_units - 1 - s->place[i]; }

// Where no unit can go by itself, one may stand for two others, and errors cancel by chance: of few
// units all smaller sets are tried, the larger ones first, if the runs that are left are enough.
static bool propose_smaller(assay_fewest_t* f, state_t* s) {
  if (!s->smaller)
    s->smaller = s->n_kept && first_set(s, s->n_kept - 1);
  else if (!next_set(s))
    s->smaller = s->n_place && first_set(s, s->n_place - 1);
  if (!s->smaller) return false;
  for (size_t i = 0; i < s->n_units; i++) put(f, s, i, false);
  for (size_t i = 0; i < s->n_place; i++) put(f, s, unit_at(s, i), true);
  return true;
}

static void learn_smaller(state_t* s, bool does) {
  if (!does) return;
  for (size_t i = 0; i < s->n_units; i++) s->units[i].kept = false;
  for (size_t i = 0; i < s->n_place; i++) s->units[unit_at(s, i)].kept = true;
  s->n_kept = s->n_place;
  s->smaller = false;
}

// ---- the strategy -------------------------------------------------------------------------------

static assay_status_t propose(assay_fewest_t* f, assay_fewest_step_t* out) {
  state_t* s = f->state;
  if (!s->units) ASSAY_TRY(make_units(f, s));
  if (s->n_runs >= s->max_runs) return NULL;
  if (!propose_group(f, s) && !propose_smaller(f, s)) return NULL;
  assay_fewest_progress(f, "trying fewer layers", (double)s->n_runs / (double)s->max_runs);
  *out = ASSAY_FEWEST_TRY;
  return NULL;
}

static assay_status_t learn(assay_fewest_t* f, bool tried_none) {
  state_t* s = f->state;
  const bool does = assay_fewest_does(f);
  const bool by_groups = !s->smaller;
  (void)tried_none;
  s->n_runs++;
  if (does)
    assay_fewest_take_fix(f);
  else
    f->fix->runs++;
  if (by_groups)
    learn_group(s, does);
  else
    learn_smaller(s, does);
  if (!does) put_best(f, s);
  return NULL;
}

static assay_status_t finish(assay_fewest_t* f) {
  put_best(f, f->state);
  // What the last run that did not do had to say is not about the set.
  assay_str_deinit(&f->found->unmet);
  f->fix->verified = true;
  return assay_fp32_set_record(&f->set, f->fix);
}

const assay_fewest_row_t assay_fewest_removal = {.state_bytes = sizeof(state_t),
                                                 .propose = propose,
                                                 .learn = learn,
                                                 .finish = finish,
                                                 .free_state = free_state};

// ---- how many runs ------------------------------------------------------------------------------

size_t assay_fewest_affordable(const assay_account_t* a, size_t n_samples, double work,
                               size_t max) {
  double one = 1;
  for (size_t i = 0; i < assay_account_layer_count(a); i++) {
    const assay_cost_t* cost = &assay_account_layer(a, i)->cost;
    one += cost->flops + cost->bytes;
  }
  return (size_t)fmin(work / (one * (double)(n_samples ? n_samples : 1)), (double)max);
}
