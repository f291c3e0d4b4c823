// Which layers a segment has, the kernels that could run them, and the layouts in which they will.
#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "exec/segment/assign.h"
#include "exec/segment/segment_internal.h"

// ---- places -------------------------------------------------------------------------------------

// How a place's sizes follow from growing dimensions.
static void find_growth(const builder_t* b, assay_place_t* p) {
  int rank;
  int64_t dims[ASSAY_KERNEL_RANK], size;
  p->capacity = p->size;
  if (!b->s->grows) return;
  if (assay_sizes_of(&b->at_capacity, p->value, ASSAY_KERNEL_RANK, &rank, dims) &&
      assay_dims_size(rank, dims, &size) && size > p->size)
    p->capacity = size;
  p->grows = assay_sizes_of(&b->beyond, p->value, ASSAY_KERNEL_RANK, &rank, dims) &&
             rank == p->rank && rank && memcmp(dims, p->dims, (size_t)rank * sizeof *dims) != 0;
}

assay_status_t segment_add_place(builder_t* b, const assay_value_t* v, int rank,
                                 const int64_t* dims, assay_place_t** out) {
  assay_segment_t* s = b->s;
  ASSAY_TRY(assay_grow(&s->places, &s->cap_places, s->n_places + 1, sizeof *s->places));
  assay_place_t* p = &s->places[s->n_places];
  *p = (assay_place_t){.value = v, .rank = rank, .size = assay_dims_product(dims, 0, rank)};
  if (rank) memcpy(p->dims, dims, (size_t)rank * sizeof *dims);
  find_growth(b, p);
  s->place_of[v->id] = (int)s->n_places++;
  *out = p;
  return NULL;
}

// What the run holds already is part of the key.
assay_status_t segment_place_of(builder_t* b, const assay_value_t* v, assay_place_t** out) {
  assay_segment_t* s = b->s;
  *out = NULL;
  if (s->place_of[v->id] >= 0) return *out = &s->places[s->place_of[v->id]], NULL;
  const assay_tensor_t* constant = assay_value_slot_constant(v);
  const assay_tensor_t* t = constant ? constant : assay_value_slot_any(&b->in->values[v->id]);
  if (!t || t->kind != ASSAY_KIND_TENSOR || t->rank > ASSAY_KERNEL_RANK) return NULL;
  ASSAY_TRY(segment_add_place(b, v, t->rank, t->dims, out));
  if (constant) return NULL;
  ASSAY_TRY(assay_grow(&s->key, &s->cap_key, s->n_key + 1, sizeof *s->key));
  s->key[s->n_key++] = s->n_places - 1;
  return NULL;
}

typedef struct looker {
  builder_t* b;
  assay_status_t status;
} looker_t;

// Inputs are said to lie plain where they do so, too.
static bool describe_value(void* user, const assay_value_t* v, assay_operand_t* o) {
  looker_t* l = user;
  assay_place_t* p = NULL;
  if (!l->status) l->status = segment_place_of(l->b, v, &p);
  if (!p) return false;
  const int lies = l->b->lies ? l->b->lies[v->id] : 0, plain = 1 << ASSAY_LAYOUT_PLAIN;
  o->rank = p->rank;
  o->size = p->size;
  memcpy(o->dims, p->dims, sizeof o->dims);
  o->constant = p->known ? p->known : assay_value_slot_constant(v);
  o->store = l->b->in->store;
  o->layout = !lies || lies & plain ? ASSAY_LAYOUT_PLAIN : ASSAY_LAYOUT_CHANNELS_LAST;
  return true;
}

// Whether sizes of activations grow. Outputs that have no place yet have what the model's
// expressions say.
static bool grows(const builder_t* b, const assay_sized_layer_t* d) {
  bool any = false;
  for (size_t k = 0; k < d->n_in; k++) {
    const assay_place_t* p = assay_segment_place(b->s, d->in[k].value);
    // What is packed of a matrix of weights stays: its kernels are made anew at little cost.
    if (d->in[k].constant && !p->known && d->in[k].rank >= 2) return false;
    any |= p->grows;
  }
  for (size_t k = 0; k < d->n_out; k++) {
    const assay_place_t* had = d->out[k].value ? assay_segment_place(b->s, d->out[k].value) : NULL;
    if (had) any |= had->grows;
    if (had || !d->out[k].value) continue;
    assay_place_t p = {.value = d->out[k].value, .rank = d->out[k].rank, .size = d->out[k].size};
    memcpy(p.dims, d->out[k].dims, sizeof p.dims);
    find_growth(b, &p);
    any |= p.grows;
  }
  return any;
}

assay_status_t segment_describe(builder_t* b, int i, assay_sized_layer_t* out,
                                bool* out_described) {
  looker_t l = {b, NULL};
  *out_described =
      b->in->target->takes(b->in->user, &b->in->layers->layers[i]) &&
      assay_describe_layer(b->in->layers, (size_t)i, b->in->sizes, describe_value, &l, out);
  out->resident = b->in->resident;
  out->own = b->in->own;
  if (*out_described && b->s->grows) out->grows = grows(b, out);
  if (*out_described) segment_describe_rooms(b, out);
  return l.status;
}

// ---- layers that no kernel runs -----------------------------------------------------------------

// The last layer that may read a value.
static int last_of(const builder_t* b, const assay_value_t* v) {
  return b->in->lifetimes->last[v->id];
}

// Sees to it that a value is had plain, whatever is chosen.
static void need_plain(builder_t* b, const assay_value_t* v) {
  const int at = b->in_problem[v->id];
  if (at >= 0) b->problem.values[at].needed |= 1 << ASSAY_LAYOUT_PLAIN;
}

// What the emulated engine will make here: places where sizes are known before. *out_ends: later
// layers read something of which nothing is known.
static assay_status_t place_emulated(builder_t* b, int i, bool* out_ends) {
  const assay_layer_t* l = &b->in->layers->layers[i];
  const assay_node_t* n = l->nodes[l->n_nodes - 1];
  const assay_value_list_t* reads = &b->in->lifetimes->reads[i];
  for (size_t k = 0; k < reads->n; k++) need_plain(b, reads->at[k]);
  for (size_t k = 0; k < n->n_outputs; k++) {
    const assay_value_t* v = n->outputs[k];
    int rank;
    int64_t dims[ASSAY_KERNEL_RANK], size;
    assay_place_t* p;
    if (!v || last_of(b, v) <= i) continue;
    if (v->type && v->type->kind != ASSAY_KIND_TENSOR) continue;  // never for kernels
    if (assay_sizes_of(b->in->sizes, v, ASSAY_KERNEL_RANK, &rank, dims) &&
        assay_dims_size(rank, dims, &size) && assay_stored_type(b->in->layers, v))
      ASSAY_TRY(segment_add_place(b, v, rank, dims, &p));
    else
      *out_ends = true;
  }
  return NULL;
}

// ---- options ------------------------------------------------------------------------------------

static void drop_last(surveyed_t* x) {
  assay_kernel_t** k = &x->options[--x->n].kernel;
  (*k)->destroy(*k);
  *k = NULL;
}

// Adds the kernel that is made of a layer as it is described; *out_added false: there is none.
static assay_status_t add_option(builder_t* b, surveyed_t* x, const assay_sized_layer_t* d,
                                 bool* out_added) {
  bool ok = false;
  *out_added = false;
  ASSAY_TRY(b->in->target->choose(b->in->user, d, &x->options[x->n].kernel,
                                  x->options[x->n].candidates, &x->options[x->n].n_candidates));
  if (!x->options[x->n].kernel) return NULL;
  x->n++;
  b->s->made++;
  ASSAY_TRY(segment_check_inputs(b, d, x->options[x->n - 1].kernel, &ok));
  if (!ok) drop_last(x);
  *out_added = ok;
  return NULL;
}

// A layout that decides nothing is plain.
static bool is_free(const assay_operand_t* o) {
  return !o->constant && !assay_layouts_are_same(o->rank, o->dims);
}

// Says that all inputs lie in a layout; false: so they were said to already.
static bool print(assay_sized_layer_t* d, assay_layout_t layout) {
  bool changed = false;
  for (size_t k = 0; k < d->n_in; k++) {
    if (!is_free(&d->in[k])) continue;
    changed |= d->in[k].layout != layout;
    d->in[k].layout = layout;
  }
  return changed;
}

static bool same_form(assay_storage_t a, assay_storage_t b) {
  return a.type == b.type && (!a.type || a.layout == b.layout);
}

// Whether two kernels are asked for in the same forms; then one is enough.
static bool same_forms(const assay_sized_layer_t* d, const assay_kernel_t* a,
                       const assay_kernel_t* b) {
  for (size_t k = 0; k < d->n_in; k++)
    if (!same_form(a->in[k], b->in[k])) return false;
  for (size_t k = 0; k < d->n_out; k++)
    if (!same_form(a->out[k], b->out[k])) return false;
  return true;
}

static assay_status_t cost_of(const builder_t* b, const assay_sized_layer_t* d, assay_kernel_t* k,
                              assay_layout_report_t* reports) {
  double us = (double)NAN;
  if (b->in->target->cost) ASSAY_TRY(b->in->target->cost(b->in->user, d, k, &us));
  reports->measured = !isnan(us);
  reports->microseconds = us;
  return NULL;
}

// Where not all that compete are measured, none is taken to be.
static void model_costs(const assay_sized_layer_t* d, surveyed_t* x) {
  bool measured = true;
  for (int o = 0; o < x->n; o++) measured &= x->reports[o].measured;
  for (int o = 0; o < x->n && !measured; o++) {
    x->reports[o].measured = false;
    x->reports[o].microseconds = assay_layouts_model_kernel(d, x->options[o].kernel);
  }
}

static bool may_choose(const builder_t* b, const assay_tactic_t* t) {
  return b->in->layers->assign_layouts &&
         (t->layouts == ASSAY_LAYOUT_FOLLOWS ||
          (t->layouts == ASSAY_LAYOUT_FOLLOWS_BITS && b->in->any_bits));
}

// The kernel in the layout in which layers one after the other would take it, and, where the
// tactic has others of the same bits, those.
static assay_status_t find_options(builder_t* b, const assay_sized_layer_t* given, surveyed_t* x) {
  assay_sized_layer_t d = *given;
  bool added;
  ASSAY_TRY(add_option(b, x, &d, &added));
  // Where sizes grow, layouts are plain: which sizes have one order in all layouts changes.
  if (!added || given->grows || !may_choose(b, x->options[0].kernel->tactic)) return NULL;
  x->reports[0].followed = true;
  for (size_t k = d.n_in; k-- > 0;)
    if (is_free(&d.in[k])) x->reports[0].layout = d.in[k].layout;
  for (assay_layout_t to = ASSAY_LAYOUT_PLAIN; to <= ASSAY_LAYOUT_CHANNELS_LAST; to++) {
    d = *given;
    d.gates = NULL;  // the same tactic was asked for the first
    if (!print(&d, to)) {
      x->reports[0].followed = false;
      continue;
    }
    ASSAY_TRY(add_option(b, x, &d, &added));
    if (!added) continue;
    bool same = x->options[x->n - 1].kernel->tactic != x->options[0].kernel->tactic;
    for (int o = 0; o + 1 < x->n; o++)
      same |= same_forms(&d, x->options[o].kernel, x->options[x->n - 1].kernel);
    if (same) {
      drop_last(x);
      continue;
    }
    x->reports[x->n - 1].layout = to;
    ASSAY_TRY(cost_of(b, &d, x->options[x->n - 1].kernel, &x->reports[x->n - 1]));
  }
  if (x->n > 1) ASSAY_TRY(cost_of(b, given, x->options[0].kernel, &x->reports[0]));
  model_costs(given, x);
  return NULL;
}

// ---- the problem --------------------------------------------------------------------------------

// A value's number there; -1: its layout is no question. made: bits, 0: its layer makes it.
static assay_status_t value_in_problem(builder_t* b, const assay_place_t* p, int made, int* out) {
  int* at = &b->in_problem[p->value->id];
  *out = -1;
  if (p->known || assay_value_slot_constant(p->value) || assay_layouts_are_same(p->rank, p->dims))
    return NULL;
  if (*at < 0) {
    const assay_layout_value_t v = {.made = made};
    ASSAY_TRY(assay_layouts_add_value(&b->problem, &v, at));
  }
  *out = *at;
  return NULL;
}

static assay_status_t add_uses(builder_t* b, const assay_sized_layer_t* d,
                               const assay_kernel_t* kernel) {
  int at;
  for (size_t k = 0; k < d->n_in; k++) {
    assay_place_t* p;
    if (!kernel->in[k].type) continue;
    ASSAY_TRY(segment_place_of(b, d->in[k].value, &p));
    ASSAY_TRY(value_in_problem(b, p, 1 << ASSAY_LAYOUT_PLAIN, &at));
    const assay_layout_t layout = segment_form_of(p, kernel->in[k]).layout;
    if (at >= 0) ASSAY_TRY(assay_layouts_add_use(&b->problem, at, layout, false));
  }
  for (size_t k = 0; k < d->n_out; k++) {
    if (!d->out[k].value) continue;
    const assay_place_t* p = assay_segment_place(b->s, d->out[k].value);
    ASSAY_TRY(value_in_problem(b, p, 0, &at));
    const assay_layout_t layout = segment_form_of(p, kernel->out[k]).layout;
    if (at >= 0) ASSAY_TRY(assay_layouts_add_use(&b->problem, at, layout, true));
  }
  return NULL;
}

// Times jitter: what another layout gains has to stand out from that.
static double cost_in_problem(const surveyed_t* x, int option) {
  const double jitter = 1.03;
  if (x->n == 1) return 0;
  const assay_layout_report_t* t = &x->reports[option];
  return option && t->measured ? jitter * t->microseconds : t->microseconds;
}

static assay_status_t add_to_problem(builder_t* b, const assay_sized_layer_t* d, surveyed_t* x) {
  ASSAY_TRY(assay_layouts_add_layer(&b->problem, &x->in_problem));
  for (int o = 0; o < x->n; o++) {
    ASSAY_TRY(assay_layouts_add_option(&b->problem, cost_in_problem(x, o)));
    ASSAY_TRY(add_uses(b, d, x->options[o].kernel));
  }
  return NULL;
}

// ---- layers -------------------------------------------------------------------------------------

// In what layouts the values lie after a layer, were there no choice.
static assay_status_t follow(builder_t* b, const assay_sized_layer_t* d,
                             const assay_kernel_t* kernel) {
  for (size_t k = 0; k < d->n_in; k++) {
    assay_place_t* p;
    if (!kernel->in[k].type) continue;
    ASSAY_TRY(segment_place_of(b, d->in[k].value, &p));
    int* lies = &b->lies[p->value->id];
    if (!*lies) *lies = 1 << ASSAY_LAYOUT_PLAIN;  // as the run holds it
    *lies |= 1 << segment_form_of(p, kernel->in[k]).layout;
  }
  for (size_t k = 0; k < d->n_out; k++) {
    const assay_operand_t* o = &d->out[k];
    assay_place_t* p;
    if (!o->value) continue;
    ASSAY_TRY(segment_add_place(b, o->value, o->rank, o->dims, &p));
    b->lies[o->value->id] = 1 << segment_form_of(p, kernel->out[k]).layout;
  }
  return NULL;
}

// Where the model's expressions do not say how large something is that a layer makes, inference for
// these very sizes may.
static assay_status_t ask_sizes(const builder_t* b, const assay_layer_t* l) {
  const assay_node_t* n = l->nodes[l->n_nodes - 1];
  int rank;
  int64_t dims[ASSAY_KERNEL_RANK];
  bool all = true;
  for (size_t i = 0; i < n->n_outputs; i++)
    all &= !n->outputs[i] ||
           (n->outputs[i]->type && n->outputs[i]->type->kind != ASSAY_KIND_TENSOR) ||
           assay_sizes_of(b->in->sizes, n->outputs[i], ASSAY_KERNEL_RANK, &rank, dims);
  return all ? NULL : assay_sizes_ask(b->in->sizes, b->in->layers->model);
}

static assay_status_t survey_layer(builder_t* b, int i, bool* out_ends) {
  surveyed_t* x = &b->layers[i - b->s->first];
  assay_step_t* step = &b->s->steps[i - b->s->first];
  assay_sized_layer_t d;
  bool described = false;
  ASSAY_TRY(ask_sizes(b, &b->in->layers->layers[i]));
  ASSAY_TRY(segment_know_layer(b, &b->in->layers->layers[i], false, &step->known));
  if (step->known) return NULL;
  ASSAY_TRY(segment_describe(b, i, &d, &described));
  if (described) ASSAY_TRY(assay_sizes_are_implied(&b->implied, &d, b->in->sizes, &described));
  d.gates = &step->gates;
  if (described) ASSAY_TRY(find_options(b, &d, x));
  if (!x->n) return segment_check_emulated(b, i), place_emulated(b, i, out_ends);
  b->conflict |= !segment_keeps_rooms(b, &d, x->options[0].kernel);
  ASSAY_TRY(follow(b, &d, x->options[0].kernel));
  return add_to_problem(b, &d, x);
}

// ---- assigning ----------------------------------------------------------------------------------

static assay_status_t cost_reorder(builder_t* b, const assay_place_t* p, assay_layout_t from,
                                   assay_layout_t to, double* out) {
  const assay_type_t type = assay_stored_type(b->in->layers, p->value);
  assay_reformat_t m = {
      .rank = p->rank, .size = p->size, .from = {type, from}, .to = {type, to}, .through = type};
  memcpy(m.dims, p->dims, sizeof m.dims);
  *out = (double)INFINITY;
  if (!b->in->target->can_move(b->in->user, &m)) return NULL;
  *out = (double)NAN;
  if (b->in->target->move_cost) ASSAY_TRY(b->in->target->move_cost(b->in->user, &m, out));
  if (isnan(*out)) *out = assay_layouts_model_reorder(&m);
  return NULL;
}

// Reorders of the values that a layer with a choice uses; others are the same whatever is chosen.
static assay_status_t cost_reorders(builder_t* b) {
  assay_layout_problem_t* p = &b->problem;
  bool* wanted = NULL;
  ASSAY_TRY(assay_new_array(p->n_values + 1, sizeof *wanted, &wanted));
  for (size_t k = 0; k < p->n_uses; k++)
    wanted[p->uses[k].value] |= p->layers[p->uses[k].layer].n_options > 1;
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < b->s->n_places; i++) {
    const assay_place_t* place = &b->s->places[i];
    const int at = b->in_problem[place->value->id];
    if (at < 0) continue;
    // What comes out of the segment, comes out plain.
    if (place->value->is_output || last_of(b, place->value) >= b->s->end)
      need_plain(b, place->value);
    if (!wanted[at]) continue;
    double(*to)[ASSAY_LAYOUTS] = p->values[at].reorder;
    st = cost_reorder(b, place, ASSAY_LAYOUT_PLAIN, ASSAY_LAYOUT_CHANNELS_LAST,
                      &to[ASSAY_LAYOUT_PLAIN][ASSAY_LAYOUT_CHANNELS_LAST]);
    if (!st)
      st = cost_reorder(b, place, ASSAY_LAYOUT_CHANNELS_LAST, ASSAY_LAYOUT_PLAIN,
                        &to[ASSAY_LAYOUT_CHANNELS_LAST][ASSAY_LAYOUT_PLAIN]);
  }
  assay_free(wanted);
  return st;
}

static void report(builder_t* b, const int* options, int i) {
  surveyed_t* x = &b->layers[i];
  assay_step_t* step = &b->s->steps[i];
  x->chosen = x->n ? options[x->in_problem] : 0;
  step->n_layouts = x->n > 1 ? x->n : 0;
  step->layout = x->chosen;
  for (int o = 0; o < step->n_layouts; o++) {
    x->reports[o].reorders = assay_layouts_reorders(&b->problem, options, (size_t)x->in_problem, o);
    step->layouts[o] = x->reports[o];
  }
}

static assay_status_t assign(builder_t* b) {
  const int n = b->s->end - b->s->first;
  int* options = NULL;
  bool exact;
  ASSAY_TRY(cost_reorders(b));
  ASSAY_TRY(assay_new_array(b->problem.n_layers + 1, sizeof *options, &options));
  assay_status_t st = assay_layouts_assign(&b->problem, ASSAY_ASSIGN_TABLE, options, &exact);
  for (int i = 0; !st && i < n; i++) report(b, options, i);
  assay_free(options);
  return st;
}

assay_status_t segment_survey(builder_t* b) {
  assay_segment_t* s = b->s;
  const int n = (int)b->in->layers->n_layers, n_values = b->in->layers->model->n_values;
  ASSAY_TRY(assay_new_array((size_t)(n - s->first), sizeof *b->layers, &b->layers));
  ASSAY_TRY(assay_new_array((size_t)n_values + 1, sizeof *b->lies, &b->lies));
  ASSAY_TRY(assay_new_array((size_t)n_values + 1, sizeof *b->in_problem, &b->in_problem));
  for (int i = 0; i < n_values; i++) b->in_problem[i] = -1;
  for (bool ends = false; !ends && s->end < n;) {
    s->end++;  // the step is there to be freed
    ASSAY_TRY(assay_status_note(survey_layer(b, s->end - 1, &ends), "layer '%s'",
                                b->in->layers->layers[s->end - 1].name));
  }
  return assign(b);
}

void segment_survey_end(builder_t* b) {
  if (!b->s->grows) {
    assay_evaluator_destroy(b->s->truth);
    b->s->truth = NULL;
  }
  assay_implied_deinit(&b->implied);
  assay_sizes_deinit(&b->at_capacity);
  assay_sizes_deinit(&b->beyond);
  for (int i = 0; b->layers && i < b->s->end - b->s->first; i++)
    for (int o = 0; o < b->layers[i].n; o++) {
      assay_kernel_t* k = b->layers[i].options[o].kernel;
      if (k) k->destroy(k);
    }
  assay_free(b->layers);
  assay_free(b->lies);
  assay_free(b->in_problem);
  assay_layouts_deinit(&b->problem);
}
