#include "accuracy/fix.h"

#include <math.h>
#include <string.h>

#include "base/alloc.h"
#include "formats/format.h"

enum { MAX_RUNS = 6 };

typedef struct search {
  assay_check_t* check;
  bool* chosen;        // by node id: in fp32
  size_t n_chosen;
} search_t;

static bool in_range(const assay_layer_account_t* a, double x) {
  return !a->layer || x <= assay_format_info(a->layer->format)->max;
}

// A layer is chosen by the nodes of the model that it stands for: `plan` is the one that it is of.
static void choose(search_t* s, const assay_plan_t* plan, const assay_layer_account_t* a) {
  const assay_node_t* const* nodes = a->layer ? a->layer->nodes : &a->node;
  size_t n = a->layer ? a->layer->n_nodes : 1;
  for (size_t k = 0; k < n; k++) {
    assay_origins_t o = assay_plan_origins(plan, &nodes[k]);
    for (size_t i = 0; i < o.n; i++) {
      s->n_chosen += !s->chosen[o.nodes[i]->id];
      s->chosen[o.nodes[i]->id] = true;
    }
  }
}

// Every layer whose own values leave the range, and those that read such values: a reader in the low format would
// round them to infinity on their way in.
static void choose_by_range(search_t* s, const assay_plan_t* plan, const assay_account_t* account) {
  for (size_t i = 0; i < assay_account_layer_count(account); i++) {
    const assay_layer_account_t* a = assay_account_layer(account, i);
    bool low = a->layer && a->layer->format != ASSAY_FORMAT_FP32;
    if (!low) continue;
    bool out = a->stores_float && !in_range(a, a->truth_max);
    bool in = a->stores_float && !in_range(a, a->truth_max_in);
    bool failed = a->verdict == ASSAY_VERDICT_OVERFLOW || a->verdict == ASSAY_VERDICT_INVALID;
    if (out || in || failed) choose(s, plan, a);
  }
}

// Where nothing overflows: layers in which more than a few values vanish.
static void choose_by_underflow(search_t* s, const assay_plan_t* plan,
                                const assay_account_t* account) {
  for (size_t i = 0; i < assay_account_layer_count(account); i++) {
    const assay_layer_account_t* a = assay_account_layer(account, i);
    bool low = a->layer && a->layer->format != ASSAY_FORMAT_FP32;
    if (low && a->judged.underflowed * 100 > a->judged.elements) choose(s, plan, a);
  }
}

// The `n` layers with the largest own error against what they hold that are not chosen yet.
static void choose_by_error(search_t* s, const assay_plan_t* plan, const assay_account_t* account,
                            size_t n) {
  for (; n; n--) {
    const assay_layer_account_t* worst = NULL;
    double worst_ratio = 0;
    for (size_t i = 0; i < assay_account_layer_count(account); i++) {
      const assay_layer_account_t* a = assay_account_layer(account, i);
      assay_origins_t o = assay_plan_origins(plan, &a->node);
      double ratio = a->own.sum_ref2 > 0 ? a->own.sum_err2 / a->own.sum_ref2 : 0;
      if (ratio <= worst_ratio || (o.n && s->chosen[o.nodes[0]->id])) continue;
      worst = a;
      worst_ratio = ratio;
    }
    if (!worst) return;
    choose(s, plan, worst);
  }
}

// ---- by shares ----------------------------------------------------------------------------------------------

// How much longer a layer takes in fp32 than in 16 bits, in bytes moved: memory at half the speed, and products at a
// small part of it (tensor cores do some 100 operations a byte).
static double extra_time(const assay_layer_account_t* a) {
  return a ? a->cost.bytes / 2 + a->cost.flops / 100 + 1 : 1;
}

typedef struct unit {
  size_t first, end;  // layers
  double share, time;
  bool chosen;
} unit_t;

static assay_status_t list_units(const assay_check_t* c, const assay_shares_t* shares,
                                 unit_t** out) {
  const assay_layers_t* layers = assay_plan_layers(c->plan);
  ASSAY_TRY(assay_new_array(shares->n, sizeof **out, out));
  for (size_t i = 0; i < shares->n; i++) {
    unit_t* u = &(*out)[i];
    *u = (unit_t){.first = shares->at[i].first, .end = shares->at[i].end};
    for (size_t o = 0; o < shares->n_outputs; o++)
      if (!c->outputs[o].faithful) u->share = fmax(u->share, fabs(shares->at[i].share[o]));
    for (size_t l = u->first; l < u->end; l++) {
      const assay_layer_t* layer = &layers->layers[l];
      u->time += extra_time(assay_account_of_node(c->account, layer->nodes[layer->n_nodes - 1]));
    }
  }
  return NULL;
}

// A stretch beside a chosen one needs no casts between them.
static double worth(const unit_t* units, size_t n, size_t i) {
  const bool beside = (i && units[i - 1].chosen) || (i + 1 < n && units[i + 1].chosen);
  return units[i].share / (units[i].time * (beside ? 1.0 : 1.5));
}

// The part of the error's energy that may stay, judged by the cosine: 1 - cosine grows with it.
static double may_stay(const assay_check_t* c) {
  double part = 1;
  for (size_t i = 0; i < c->n_outputs; i++) {
    const assay_output_check_t* o = &c->outputs[i];
    if (o->faithful || !o->is_float) continue;
    const double now = 1 - assay_error_sum_cosine(&o->error);
    part = fmin(part, now > 0.001 ? 0.001 / now : 0.25);
  }
  return part;
}

// Chooses stretches, those that take most error away for their time first, until so little should be left.
static assay_status_t choose_by_share(search_t* s, const assay_shares_t* shares, double rest) {
  const assay_check_t* c = s->check;
  const assay_layers_t* layers = assay_plan_layers(c->plan);
  unit_t* units = NULL;
  ASSAY_TRY(list_units(c, shares, &units));
  double left = 1;
  while (left > rest) {
    size_t best = shares->n;
    for (size_t i = 0; i < shares->n; i++) {
      if (units[i].chosen || units[i].share <= 0) continue;
      if (best == shares->n || worth(units, shares->n, i) > worth(units, shares->n, best)) best = i;
    }
    if (best == shares->n) break;
    units[best].chosen = true;
    left -= units[best].share;
    for (size_t l = units[best].first; l < units[best].end; l++) {
      const assay_layer_t* layer = &layers->layers[l];
      const assay_layer_account_t* a =
          assay_account_of_node(c->account, layer->nodes[layer->n_nodes - 1]);
      if (a) choose(s, c->plan, a);
    }
  }
  assay_free(units);
  return NULL;
}

// The precision of the check with the chosen layers in fp32.
static assay_status_t precision_of(const search_t* s, assay_precision_t* out) {
  const assay_precision_t* asked = &s->check->options.precision;
  const assay_model_t* m = s->check->model;
  assay_str_t text = {0};
  for (size_t r = 0; r < asked->n_rules; r++)
    assay_str_printf(&text, "%s%s:%s", text.len ? "," : "", asked->rules[r].pattern,
                     assay_format_name(asked->rules[r].format));
  for (size_t g = 0; g < m->n_graphs; g++) {
    for (size_t i = 0; i < m->graphs[g]->n_nodes; i++) {
      const assay_node_t* n = m->graphs[g]->nodes[i];
      if (!s->chosen[n->id]) continue;
      if (text.len) assay_str_append(&text, ",");
      assay_precision_print(&n, 1, ASSAY_FORMAT_FP32, &text);
    }
  }
  *out = (assay_precision_t){.format = asked->format, .accumulator = asked->accumulator};
  assay_status_t st = assay_str_status(&text);
  if (!st) st = assay_precision_parse(out, assay_str_get(&text));
  assay_str_deinit(&text);
  return st;
}

// Runs with the layers chosen so far. If that is not faithful, *out_next is the account to choose more from.
static assay_status_t verify(search_t* s, const assay_samples_t* inputs,
                             const assay_samples_t* golden, assay_plan_t** out_plan,
                             assay_account_t** out_account, bool* out_faithful) {
  assay_check_t* c = s->check;
  assay_precision_t precision = {0};
  assay_account_options_t options = {.unquantized = c->options.unquantized};
  assay_status_t st = precision_of(s, &precision);
  if (!st) st = assay_plan_create(c->model, &precision, &c->options.plan, c->options.seed, out_plan);
  assay_precision_deinit(&precision);
  if (!st) st = assay_account_create(*out_plan, c->options.backend, &options, out_account);
  assay_free(c->fix.outputs);
  c->fix.outputs = NULL;
  if (!st) st = assay_outputs_create(c->model->graph, &c->fix.outputs);
  if (!st)
    st = assay_run_samples(*out_account, c->model, inputs, golden, c->options.require,
                           c->fix.outputs, out_faithful);
  c->fix.runs++;
  return st;
}

static assay_status_t record(search_t* s) {
  assay_check_t* c = s->check;
  assay_free(c->fix.nodes);
  c->fix.nodes = NULL;
  c->fix.n_nodes = 0;
  ASSAY_TRY(assay_new_array(s->n_chosen, sizeof *c->fix.nodes, &c->fix.nodes));
  for (size_t g = 0; g < c->model->n_graphs; g++)
    for (size_t i = 0; i < c->model->graphs[g]->n_nodes; i++)
      if (s->chosen[c->model->graphs[g]->nodes[i]->id])
        c->fix.nodes[c->fix.n_nodes++] = c->model->graphs[g]->nodes[i];
  c->fix.format = ASSAY_FORMAT_FP32;
  c->has_fix = true;
  return NULL;
}

static assay_status_t search(search_t* s, const assay_samples_t* inputs,
                             const assay_samples_t* golden) {
  assay_check_t* c = s->check;
  assay_plan_t* plan = NULL;
  assay_account_t* account = NULL;
  assay_status_t st = NULL;
  double rest = may_stay(c) / 2;
  size_t step = 4;
  for (int run = 0; !st && run < MAX_RUNS; run++) {
    const assay_account_t* seen = account ? account : c->account;
    const assay_plan_t* seen_plan = account ? plan : c->plan;
    size_t before = s->n_chosen;
    choose_by_range(s, seen_plan, seen);
    if (s->n_chosen == before) choose_by_underflow(s, seen_plan, seen);
    // A run that still misses leaves less and less; then the shares have said what they know.
    for (; !st && s->n_chosen == before && rest > 1e-3; rest /= 4)
      st = choose_by_share(s, &c->shares, rest);
    if (st) break;
    if (s->n_chosen == before) {
      choose_by_error(s, seen_plan, seen, step);
      step *= 4;
    }
    if (s->n_chosen == before) break;
    assay_account_destroy(account);
    assay_plan_destroy(plan);
    account = NULL;
    plan = NULL;
    if (c->options.progress) c->options.progress(c->options.user, "verifying a fix", 0);
    st = verify(s, inputs, golden, &plan, &account, &c->fix.verified);
    if (c->fix.verified) break;
  }
  assay_account_destroy(account);
  assay_plan_destroy(plan);
  return st ? st : record(s);
}

assay_status_t assay_fix_search(assay_check_t* check, const assay_samples_t* inputs,
                                const assay_samples_t* golden) {
  search_t s = {.check = check};
  ASSAY_TRY(assay_new_array((size_t)check->model->n_node_ids, sizeof *s.chosen, &s.chosen));
  assay_status_t st = search(&s, inputs, golden);
  assay_free(s.chosen);
  return st;
}
