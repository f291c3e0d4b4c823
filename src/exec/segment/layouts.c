// Which layout each layer reads and writes: the cheapest for the graph as a whole, reorders
// included.
#include "exec/segment/layouts.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "exec/segment/assign.h"

enum { SETS = (1 << ASSAY_LAYOUTS) - 1 };  // of layouts; none is not one

// ---- the problem --------------------------------------------------------------------------------

void assay_layouts_deinit(assay_layout_problem_t* p) {
  assay_free(p->values);
  assay_free(p->layers);
  assay_free(p->uses);
  *p = (assay_layout_problem_t){0};
}

assay_status_t assay_layouts_add_value(assay_layout_problem_t* p, const assay_layout_value_t* v,
                                       int* out) {
  ASSAY_TRY(assay_grow(&p->values, &p->cap_values, p->n_values + 1, sizeof *p->values));
  p->values[p->n_values] = *v;
  *out = (int)p->n_values++;
  return NULL;
}

assay_status_t assay_layouts_add_layer(assay_layout_problem_t* p, int* out) {
  ASSAY_TRY(assay_grow(&p->layers, &p->cap_layers, p->n_layers + 1, sizeof *p->layers));
  memset(&p->layers[p->n_layers], 0, sizeof *p->layers);
  *out = (int)p->n_layers++;
  return NULL;
}

assay_status_t assay_layouts_add_option(assay_layout_problem_t* p, double microseconds) {
  struct assay_layout_choice* l = &p->layers[p->n_layers - 1];
  if (l->n_options == ASSAY_LAYOUT_OPTIONS)
    return ASSAY_ERROR(ASSAY_INTERNAL, "a layer has more than %d options", ASSAY_LAYOUT_OPTIONS);
  l->options[l->n_options++] = (struct assay_layout_cost){microseconds, p->n_uses, p->n_uses};
  return NULL;
}

assay_status_t assay_layouts_add_use(assay_layout_problem_t* p, int value, assay_layout_t layout,
                                     bool makes) {
  struct assay_layout_choice* l = &p->layers[p->n_layers - 1];
  ASSAY_TRY(assay_grow(&p->uses, &p->cap_uses, p->n_uses + 1, sizeof *p->uses));
  p->uses[p->n_uses++] = (assay_value_use_t){.value = value,
                                             .layout = layout,
                                             .makes = makes,
                                             .layer = p->n_layers - 1,
                                             .before = p->values[value].last_use,
                                             .option = l->n_options - 1};
  p->values[value].last_use = p->n_uses;
  l->options[l->n_options - 1].end = p->n_uses;
  return NULL;
}

// ---- what an assignment costs -------------------------------------------------------------------

// Of a value that is had in a set of layouts.
static double reorders_from(const assay_layout_value_t* v, int made, int set) {
  double sum = 0;
  for (int to = 0; to < ASSAY_LAYOUTS; to++) {
    double min = (double)INFINITY;
    if (made >> to & 1 || !(set >> to & 1)) continue;
    for (int from = 0; from < ASSAY_LAYOUTS; from++)
      if (made >> from & 1) min = fmin(min, v->reorder[from][to]);
    sum += min;
  }
  return sum;
}

// Where an assignment is looked at with another option for one layer.
typedef struct trial {
  const int* options;
  size_t layer;
  int option;
} trial_t;

// The sets in which a value is made and needed.
static void gather(const assay_layout_problem_t* p, const trial_t* l, int value, int* made,
                   int* needed) {
  *made = p->values[value].made;
  *needed = p->values[value].needed;
  for (size_t k = p->values[value].last_use; k; k = p->uses[k - 1].before) {
    const assay_value_use_t* u = &p->uses[k - 1];
    if (u->option != (u->layer == l->layer ? l->option : l->options[u->layer])) continue;
    if (u->makes) *made |= 1 << u->layout;
    *needed |= 1 << u->layout;
  }
}

static double value_cost(const assay_layout_problem_t* p, const trial_t* l, int value) {
  int made, needed;
  gather(p, l, value, &made, &needed);
  return reorders_from(&p->values[value], made, needed);
}

double assay_layouts_cost(const assay_layout_problem_t* p, const int* options) {
  const trial_t l = {.options = options, .layer = p->n_layers};
  double sum = 0;
  for (size_t i = 0; i < p->n_layers; i++) sum += p->layers[i].options[options[i]].microseconds;
  for (size_t v = 0; v < p->n_values; v++) sum += value_cost(p, &l, (int)v);
  return sum;
}

double assay_layouts_reorders(const assay_layout_problem_t* p, const int* options, size_t layer,
                              int option) {
  const struct assay_layout_choice* c = &p->layers[layer];
  const trial_t l = {options, layer, option};
  double sum = 0;
  if (!c->n_options) return 0;
  const size_t first = c->options[0].first, end = c->options[c->n_options - 1].end;
  for (size_t k = first; k < end; k++) {
    bool again = false;
    for (size_t j = first; j < k; j++) again |= p->uses[j].value == p->uses[k].value;
    if (!again) sum += value_cost(p, &l, p->uses[k].value);
  }
  return sum;
}

// ---- as states of variables ---------------------------------------------------------------------

// Variables: layers with more than one option, then values that such a layer uses.
typedef struct translation {
  const assay_layout_problem_t* p;
  int *variable_of_layer, *variable_of_value;  // -1: none
  int *n_states, n;
  int *made, *needed;  // by value: of itself and of the layers that have one option
  int* states;
  assay_assign_t* a;
} translation_t;

static void translation_deinit(translation_t* t) {
  assay_free(t->variable_of_layer);
  assay_free(t->variable_of_value);
  assay_free(t->n_states);
  assay_free(t->made);
  assay_free(t->needed);
  assay_free(t->states);
  assay_assign_destroy(t->a);
}

static assay_status_t number_variables(translation_t* t) {
  const assay_layout_problem_t* p = t->p;
  const size_t all = p->n_layers + p->n_values + 1;
  ASSAY_TRY(assay_new_array(p->n_layers + 1, sizeof(int), &t->variable_of_layer));
  ASSAY_TRY(assay_new_array(p->n_values + 1, sizeof(int), &t->variable_of_value));
  ASSAY_TRY(assay_new_array(p->n_values + 1, sizeof(int), &t->made));
  ASSAY_TRY(assay_new_array(p->n_values + 1, sizeof(int), &t->needed));
  ASSAY_TRY(assay_new_array(all, sizeof(int), &t->n_states));
  ASSAY_TRY(assay_new_array(all, sizeof(int), &t->states));
  for (size_t v = 0; v < p->n_values; v++) {
    t->variable_of_value[v] = -1;
    t->made[v] = p->values[v].made;
    t->needed[v] = p->values[v].needed;
  }
  for (size_t i = 0; i < p->n_layers; i++) {
    const struct assay_layout_choice* l = &p->layers[i];
    t->variable_of_layer[i] = l->n_options > 1 ? t->n : -1;
    if (l->n_options > 1) t->n_states[t->n++] = l->n_options;
  }
  for (size_t i = 0; i < p->n_layers; i++) {
    const struct assay_layout_choice* l = &p->layers[i];
    const size_t end = l->n_options ? l->options[l->n_options - 1].end : 0;
    for (size_t k = l->options[0].first; k < end; k++) {
      const assay_value_use_t* u = &p->uses[k];
      if (l->n_options > 1) {
        if (t->variable_of_value[u->value] < 0) t->variable_of_value[u->value] = t->n++;
        t->n_states[t->variable_of_value[u->value]] = SETS;
        continue;
      }
      if (u->makes) t->made[u->value] |= 1 << u->layout;
      t->needed[u->value] |= 1 << u->layout;
    }
  }
  return NULL;
}

// State s of a value is set s + 1.
static assay_status_t add_value(translation_t* t, size_t v) {
  double costs[SETS];
  const int made = t->made[v], needed = t->needed[v], variable = t->variable_of_value[v];
  if (variable < 0) return NULL;
  for (int s = 0; s < SETS; s++) {
    const bool has_all = (needed & ~(s + 1)) == 0;
    costs[s] = !has_all ? (double)INFINITY
               : made   ? reorders_from(&t->p->values[v], made, s + 1)
                        : 0;
  }
  return assay_assign_add(t->a, 1, &variable, costs);
}

// The costs of a layer's options beside the sets of one of its values.
static assay_status_t add_pair(translation_t* t, size_t layer, int value) {
  const assay_layout_problem_t* p = t->p;
  const struct assay_layout_choice* l = &p->layers[layer];
  double costs[ASSAY_LAYOUT_OPTIONS * SETS];
  for (int o = 0; o < l->n_options; o++)
    for (int s = 0; s < SETS; s++) {
      double* c = &costs[o * SETS + s];
      *c = 0;
      for (size_t k = l->options[o].first; k < l->options[o].end; k++) {
        const assay_value_use_t* u = &p->uses[k];
        if (u->value != value) continue;
        if (!((s + 1) >> u->layout & 1)) *c = (double)INFINITY;
        if (u->makes) *c += reorders_from(&p->values[value], 1 << u->layout, s + 1);
      }
    }
  const int variables[] = {t->variable_of_layer[layer], t->variable_of_value[value]};
  return assay_assign_add(t->a, 2, variables, costs);
}

static assay_status_t add_layer(translation_t* t, size_t i) {
  const struct assay_layout_choice* l = &t->p->layers[i];
  double costs[ASSAY_LAYOUT_OPTIONS];
  const int variable = t->variable_of_layer[i];
  if (variable < 0) return NULL;
  for (int o = 0; o < l->n_options; o++) costs[o] = l->options[o].microseconds;
  ASSAY_TRY(assay_assign_add(t->a, 1, &variable, costs));
  const size_t first = l->options[0].first, end = l->options[l->n_options - 1].end;
  for (size_t k = first; k < end; k++) {
    bool again = false;
    for (size_t j = first; j < k; j++) again |= t->p->uses[j].value == t->p->uses[k].value;
    if (!again) ASSAY_TRY(add_pair(t, i, t->p->uses[k].value));
  }
  return NULL;
}

static assay_status_t translate(translation_t* t) {
  const assay_layout_problem_t* p = t->p;
  ASSAY_TRY(number_variables(t));
  ASSAY_TRY(assay_assign_create(t->n, t->n_states, &t->a));
  for (size_t v = 0; v < p->n_values; v++) ASSAY_TRY(add_value(t, v));
  for (size_t i = 0; i < p->n_layers; i++) ASSAY_TRY(add_layer(t, i));
  return NULL;
}

static void set_states(translation_t* t, const int* options) {
  const assay_layout_problem_t* p = t->p;
  const trial_t l = {.options = options, .layer = p->n_layers};
  for (size_t i = 0; i < p->n_layers; i++)
    if (t->variable_of_layer[i] >= 0) t->states[t->variable_of_layer[i]] = options[i];
  for (size_t v = 0; v < p->n_values; v++) {
    int made, needed;
    if (t->variable_of_value[v] < 0) continue;
    gather(p, &l, (int)v, &made, &needed);
    t->states[t->variable_of_value[v]] = (needed ? needed : made ? made : 1) - 1;
  }
}

// The cheapest from a beginning, which it replaces.
static assay_status_t solve_from(translation_t* t, size_t entries, int* options, bool* out_exact) {
  set_states(t, options);
  ASSAY_TRY(assay_assign_solve(t->a, entries, t->states, out_exact));
  for (size_t i = 0; i < t->p->n_layers; i++)
    options[i] = t->variable_of_layer[i] < 0 ? 0 : t->states[t->variable_of_layer[i]];
  return NULL;
}

// By layer the option that uses a layout most.
static void prefer(const assay_layout_problem_t* p, assay_layout_t layout, int* options) {
  for (size_t i = 0; i < p->n_layers; i++) {
    size_t max = 0;
    options[i] = 0;
    for (int o = 0; o < p->layers[i].n_options; o++) {
      size_t n = 0;
      for (size_t k = p->layers[i].options[o].first; k < p->layers[i].options[o].end; k++)
        n += p->uses[k].layout == layout;
      if (n > max) max = n, options[i] = o;
    }
  }
}

// From the first options, and, where that proves nothing, from all layers in one layout. Sums in
// another order may differ in their last bits: what is no cheaper than what was found gives way.
static assay_status_t solve(translation_t* t, size_t entries, int* next, int* options,
                            bool* out_exact) {
  const assay_layout_problem_t* p = t->p;
  double cost = assay_layouts_cost(p, options);
  for (int start = 0; start <= ASSAY_LAYOUTS; start++) {
    bool exact;
    if (start)
      prefer(p, (assay_layout_t)(start - 1), next);
    else
      memset(next, 0, p->n_layers * sizeof *next);
    ASSAY_TRY(solve_from(t, entries, next, &exact));
    const double now = assay_layouts_cost(p, next);
    if (now < (1 - 1e-9) * cost) {
      memcpy(options, next, p->n_layers * sizeof *next);
      cost = now;
    }
    if (!start) *out_exact = exact;
    if (exact) break;
  }
  return NULL;
}

assay_status_t assay_layouts_assign(const assay_layout_problem_t* p, size_t entries,
                                    int* out_options, bool* out_exact) {
  translation_t t = {.p = p};
  int *next = NULL, *options = NULL;
  assay_status_t st = assay_new_array(p->n_layers + 1, sizeof *next, &next);
  if (!st) st = assay_new_array(p->n_layers + 1, sizeof *options, &options);
  if (!st) st = translate(&t);
  if (!st) st = solve(&t, entries, next, options, out_exact);
  if (!st && p->n_layers) memcpy(out_options, options, p->n_layers * sizeof *options);
  translation_deinit(&t);
  assay_free(options);
  assay_free(next);
  return st;
}

// ---- costs where nothing is measured ------------------------------------------------------------
//
// Bytes in a microsecond, of one core: rows that are read and written one after the other, and
// matrices that are transposed. Only what layouts change counts, so arithmetic does not.

enum { BYTES_IN_ROWS = 20000, BYTES_TRANSPOSED = 8000 };

double assay_layouts_model_kernel(const assay_sized_layer_t* l, const assay_kernel_t* k) {
  double bytes = 0;
  if (!k->run && !k->enqueue) return 0;
  for (size_t i = 0; i < l->n_in; i++)
    if (k->in[i].type) bytes += (double)assay_operand_bytes(&l->in[i], k->in[i].type);
  for (size_t i = 0; i < l->n_out; i++)
    if (l->out[i].value) bytes += (double)assay_operand_bytes(&l->out[i], k->out[i].type);
  return bytes / BYTES_IN_ROWS;
}

double assay_layouts_model_reorder(const assay_reformat_t* m) {
  const double bytes =
      (double)assay_reformat_bytes(m, m->from.type) + (double)assay_reformat_bytes(m, m->to.type);
  return 0.5 + bytes / BYTES_TRANSPOSED;
}

bool assay_layouts_are_same(int rank, const int64_t* dims) {
  if (rank < 3) return true;
  bool one = true;
  for (int i = 2; i < rank; i++) one &= dims[i] == 1;
  return one || dims[1] == 1;
}

const char* assay_layout_name(assay_layout_t layout) {
  return layout == ASSAY_LAYOUT_CHANNELS_LAST ? "channels last" : "plain";
}
