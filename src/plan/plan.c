// A plan: a model cut into layers, each with a format.
#include <string.h>

#include "base/alloc.h"
#include "formats/format.h"
#include "passes/float_types.h"
#include "plan/cone.h"
#include "plan/internal.h"

// The rules while layers are made.
typedef struct rules {
  const assay_precision_t* precision;
  bool* used;  // by rule
} rules_t;

assay_origins_t assay_plan_origins(const assay_plan_t* plan, const assay_node_t* const* node) {
  return plan->rewrite ? assay_rewrite_origins(plan->rewrite, *node) : (assay_origins_t){node, 1};
}

static bool rule_matches(const assay_precision_rule_t* rule, const assay_node_t* n) {
  if (assay_glob_match(rule->pattern, n->label)) return true;
  for (size_t i = 0; i < n->n_outputs; i++)
    if (n->outputs[i] && assay_glob_match(rule->pattern, n->outputs[i]->name)) return true;
  return false;
}

assay_nearest_t assay_plan_nearest(const assay_model_t* m, const char* pattern) {
  assay_nearest_t near = {.wanted = pattern};
  for (size_t g = 0; g < m->n_graphs; g++)
    for (size_t i = 0; i < m->graphs[g]->n_nodes; i++) {
      const assay_node_t* n = m->graphs[g]->nodes[i];
      assay_nearest_offer(&near, n->label);
      for (size_t k = 0; k < n->n_outputs; k++)
        if (n->outputs[k]) assay_nearest_offer(&near, n->outputs[k]->name);
    }
  return near;
}

static assay_format_t default_accumulator(assay_format_t format) {
  return format == ASSAY_FORMAT_FP64 ? ASSAY_FORMAT_FP64 : ASSAY_FORMAT_FP32;
}

// The last rule that matches one of the nodes that a node stands for; -1: none; after the last
// rule: one of them is kept, and after that, its format is given.
static int rule_of(const assay_plan_t* plan, const rules_t* rules,
                   const assay_node_t* const* node) {
  int found = -1;
  assay_origins_t o = assay_plan_origins(plan, node);
  for (size_t r = 0; r < rules->precision->n_rules; r++) {
    for (size_t i = 0; i < o.n; i++) {
      if (!rule_matches(&rules->precision->rules[r], o.nodes[i])) continue;
      rules->used[r] = true;
      found = (int)r;
    }
  }
  for (size_t i = 0; rules->precision->pinned && i < o.n; i++)
    if (rules->precision->pinned[o.nodes[i]->id]) found = (int)rules->precision->n_rules;
  for (size_t i = 0; rules->precision->given && i < o.n; i++)
    if (rules->precision->given[o.nodes[i]->id])
      found = (int)rules->precision->n_rules + (int)rules->precision->given[o.nodes[i]->id];
  return found;
}

static assay_format_t format_of(const assay_precision_t* p, int rule) {
  if (rule > (int)p->n_rules) return (assay_format_t)(rule - (int)p->n_rules);
  if (rule == (int)p->n_rules) return p->pinned_format;
  return rule < 0 ? p->format : p->rules[rule].format;
}

assay_status_t assay_plan_name_layer(const assay_plan_t* plan, assay_layer_t* layer) {
  const char *first = layer->nodes[0]->label, *last = layer->nodes[layer->n_nodes - 1]->label;
  layer->name = first;
  if (layer->n_nodes == 1) return NULL;
  return assay_arena_printf(plan->arena, &layer->name, "%s .. %s", first, last);
}

// What follows from sizes is computed before a run where it can be, as constants are: in no
// narrower format where it cannot.
static bool follows_from_sizes(const assay_plan_t* plan, const assay_node_t* n) {
  return plan->rewrite && n->graph == plan->layers.model->graph &&
         assay_rewrite_is_of_sizes(plan->rewrite, n);
}

// The format of a node by the types that the model declared; NONE: these say nothing.
static assay_format_t declared_format(const assay_plan_t* plan, const assay_precision_t* p,
                                      const assay_node_t* n) {
  if (p->undeclared || !plan->rewrite) return ASSAY_FORMAT_NONE;
  return assay_rewrite_declared_format(plan->rewrite, n);
}

// What the last matching rule says, else the declared types, else the precision.
static assay_format_t format_of_node(const assay_plan_t* plan, const assay_precision_t* p, int rule,
                                     const assay_node_t* n) {
  const assay_format_t declared = rule < 0 ? declared_format(plan, p, n) : ASSAY_FORMAT_NONE;
  return declared != ASSAY_FORMAT_NONE ? declared : format_of(p, rule);
}

// A layer of neighbouring nodes, in the format that the last matching rule says.
static assay_status_t make_layer(const assay_plan_t* plan, const assay_precision_t* p, int rule,
                                 const assay_node_t** nodes, size_t n, assay_layer_t* layer) {
  *layer = (assay_layer_t){.nodes = nodes, .n_nodes = n};
  ASSAY_TRY(assay_plan_name_layer(plan, layer));
  layer->format = format_of_node(plan, p, rule, nodes[0]);
  const bool declared = declared_format(plan, p, nodes[0]) != ASSAY_FORMAT_NONE;
  layer->reason = p->format == ASSAY_FORMAT_FP32 || declared ? "as declared" : "--precision";
  if (rule > (int)p->n_rules)
    layer->reason = "given";
  else if (rule == (int)p->n_rules)
    layer->reason = "kept";
  else if (rule >= 0)  // rules may go before the plan does
    ASSAY_TRY(assay_arena_strdup(plan->arena, p->rules[rule].pattern, &layer->reason));
  if (n == 1 && follows_from_sizes(plan, nodes[0])) {
    layer->format = ASSAY_FORMAT_FP32;
    layer->reason = "follows from sizes";
  }
  bool own =
      p->accumulator && layer->format != ASSAY_FORMAT_FP32 && layer->format != ASSAY_FORMAT_FP64;
  layer->accumulator = own ? p->accumulator : default_accumulator(layer->format);
  return NULL;
}

static int group_of(const assay_plan_t* plan, const assay_node_t* n) {
  return plan->rewrite && n->graph == plan->layers.model->graph
             ? plan->rewrite->group_of_node[n->id]
             : -1;
}

// How many nodes from here on are one layer: those of one group, if the rules give them one format.
static size_t layer_length(const assay_plan_t* plan, const rules_t* rules,
                           const assay_node_t** nodes, size_t left) {
  int group = group_of(plan, nodes[0]);
  size_t n = 1;
  if (group < 0) return 1;
  while (n < left && group_of(plan, nodes[n]) == group) n++;
  const assay_precision_t* p = rules->precision;
  const assay_format_t format = format_of_node(plan, p, rule_of(plan, rules, &nodes[0]), nodes[0]);
  for (size_t i = 1; i < n; i++)
    if (format_of_node(plan, p, rule_of(plan, rules, &nodes[i]), nodes[i]) != format) return 1;
  return n;
}

// Later nodes of a group that fell apart must not start a layer of the rest of it.
static bool starts_group(const assay_plan_t* plan, const assay_graph_t* g, size_t i) {
  int group = group_of(plan, g->nodes[i]);
  return group >= 0 && (!i || group_of(plan, g->nodes[i - 1]) != group);
}

// Whether n nodes from i on are a group, and all of it.
static bool is_whole_group(const assay_plan_t* plan, const assay_graph_t* g, size_t i, size_t n) {
  const int group = group_of(plan, g->nodes[i]);
  return starts_group(plan, g, i) && group_of(plan, g->nodes[i + n - 1]) == group &&
         (i + n == g->n_nodes || group_of(plan, g->nodes[i + n]) != group);
}

// What is done to the sums of a group that is computed on integers is float32 arithmetic: in other
// formats its nodes are what they are.
static const assay_int8_t* int8_of(const assay_plan_t* plan, const assay_layer_t* layer) {
  const bool fp32 = layer->format == ASSAY_FORMAT_FP32 && layer->accumulator == ASSAY_FORMAT_FP32;
  return fp32 ? plan->rewrite->int8_of_group[group_of(plan, layer->nodes[0])] : NULL;
}

// The layers of a graph, from layer *count on.
static assay_status_t cut_graph(assay_plan_t* plan, const rules_t* rules, const assay_graph_t* g,
                                const assay_node_t** nodes, assay_layer_t* layers, size_t* count,
                                int* of_node, bool* hidden) {
  for (size_t i = 0; i < g->n_nodes; i++) nodes[i] = g->nodes[i];
  for (size_t i = 0, n; i < g->n_nodes; i += n) {
    n = starts_group(plan, g, i) ? layer_length(plan, rules, &nodes[i], g->n_nodes - i) : 1;
    int rule = -1;
    for (size_t k = 0; k < n; k++) {
      int other = rule_of(plan, rules, &nodes[i + k]);
      if (other > rule) rule = other;
      of_node[nodes[i + k]->id] = (int)*count;
      for (size_t o = 0; k + 1 < n && o < nodes[i + k]->n_outputs; o++)
        if (nodes[i + k]->outputs[o]) hidden[nodes[i + k]->outputs[o]->id] = true;
    }
    assay_layer_t* layer = &layers[(*count)++];
    ASSAY_TRY(make_layer(plan, rules->precision, rule, &nodes[i], n, layer));
    if (is_whole_group(plan, g, i, n)) layer->int8 = int8_of(plan, layer);
  }
  return NULL;
}

static assay_status_t make_layers(assay_plan_t* plan, const rules_t* rules) {
  const assay_model_t* m = plan->layers.model;
  size_t n = 0;
  for (size_t g = 0; g < m->n_graphs; g++) n += m->graphs[g]->n_nodes;
  assay_layer_t* layers = NULL;
  const assay_node_t** nodes = NULL;
  int* of_node = NULL;
  bool* hidden = NULL;
  ASSAY_TRY(assay_arena_new(plan->arena, n, sizeof *layers, &layers));
  ASSAY_TRY(assay_arena_new(plan->arena, n, sizeof *nodes, &nodes));
  ASSAY_TRY(assay_arena_new(plan->arena, (size_t)m->n_node_ids, sizeof *of_node, &of_node));
  ASSAY_TRY(assay_arena_new(plan->arena, (size_t)m->n_values, sizeof *hidden, &hidden));
  for (int i = 0; i < m->n_node_ids; i++) of_node[i] = -1;
  // The top graph's layers first: step(i) runs layer i. Layers of bodies follow.
  size_t count = 0;
  ASSAY_TRY(cut_graph(plan, rules, m->graph, nodes, layers, &count, of_node, hidden));
  plan->layers.n_layers = count;
  nodes += m->graph->n_nodes;
  for (size_t g = 0; g < m->n_graphs; g++) {
    if (m->graphs[g] == m->graph) continue;
    ASSAY_TRY(cut_graph(plan, rules, m->graphs[g], nodes, layers, &count, of_node, hidden));
    nodes += m->graphs[g]->n_nodes;
  }
  plan->layers.layers = layers;
  plan->layers.n_all_layers = count;
  plan->layers.layer_of_node = of_node;
  plan->layers.hidden_value = hidden;
  return NULL;
}

// ---- recorded layers ---------------------------------------------------------------------------

// Whether a node's outputs are random numbers. Dropout's are what came in, unless it trains.
static bool draws(const assay_node_t* n) {
  if (!n->op || !(n->op->flags & ASSAY_OP_RANDOM)) return false;
  if (!(n->op->flags & ASSAY_OP_POINTWISE) && strcmp(n->op_type, "BitmaskDropout") != 0)
    return true;
  const assay_value_t* training = n->n_inputs > 2 ? n->inputs[2] : NULL;
  if (!training || !training->constant) return training != NULL;
  return *(const uint8_t*)training->constant->data != 0;
}

static assay_status_t check_draws(const assay_layer_t* layer) {
  for (size_t k = 0; k + 1 < layer->n_nodes; k++)
    if (draws(layer->nodes[k]))
      return ASSAY_NODE_ERROR(
          layer->nodes[k], ASSAY_UNSUPPORTED,
          "it draws random numbers, which differ from engine to engine, and the "
          "engine's outputs do not hold them");
  return NULL;
}

static assay_status_t make_recorded_layers(assay_plan_t* plan, const rules_t* rules,
                                           const assay_recorded_t* recorded) {
  const assay_model_t* m = plan->layers.model;
  assay_cone_t* cones = NULL;
  assay_layer_t* layers = NULL;
  int* of_node = NULL;
  bool* hidden = NULL;
  size_t n = 0;
  ASSAY_TRY(assay_cones_create(m, recorded->holds, plan->arena, &cones, &n));
  ASSAY_TRY(assay_arena_new(plan->arena, n, sizeof *layers, &layers));
  ASSAY_TRY(assay_arena_new(plan->arena, (size_t)m->n_node_ids, sizeof *of_node, &of_node));
  ASSAY_TRY(assay_arena_new(plan->arena, (size_t)m->n_values, sizeof *hidden, &hidden));
  for (int i = 0; i < m->n_node_ids; i++) of_node[i] = -1;
  for (size_t i = 0; i < m->graph->n_nodes; i++) {
    const assay_node_t* node = m->graph->nodes[i];
    rule_of(plan, rules, &node);  // marks the rules that match something
    for (size_t o = 0; o < node->n_outputs; o++) {
      const assay_value_t* v = node->outputs[o];
      if (v && !v->constant) hidden[v->id] = !recorded->holds[v->id];
    }
  }
  for (size_t i = 0; i < n; i++) {
    const assay_node_t** nodes = cones[i].nodes;
    const assay_node_t* last = nodes[cones[i].n_nodes - 1];
    ASSAY_TRY(make_layer(plan, rules->precision, rule_of(plan, rules, &last), nodes,
                         cones[i].n_nodes, &layers[i]));
    layers[i].drawn = draws(last);
    ASSAY_TRY(check_draws(&layers[i]));
    // A node that ends a layer is of that one.
    for (size_t k = 0; k < cones[i].n_nodes; k++)
      if (of_node[nodes[k]->id] < 0 || nodes[k] == last) of_node[nodes[k]->id] = (int)i;
  }
  plan->layers.layers = layers;
  plan->layers.n_layers = plan->layers.n_all_layers = n;
  plan->layers.layer_of_node = of_node;
  plan->layers.hidden_value = hidden;
  plan->layers.recorded = recorded;
  return NULL;
}

// Rules for nodes that the passes took away are met: there is nothing to be in another format.
static void mark_rules_of_removed(const assay_plan_t* plan, const rules_t* rules) {
  const assay_model_t* m = plan->model;
  for (size_t r = 0; plan->rewrite && r < rules->precision->n_rules; r++)
    for (size_t g = 0; !rules->used[r] && g < m->n_graphs; g++)
      for (size_t i = 0; !rules->used[r] && i < m->graphs[g]->n_nodes; i++)
        rules->used[r] = rule_matches(&rules->precision->rules[r], m->graphs[g]->nodes[i]);
}

static assay_status_t check_rules(const assay_plan_t* plan, const assay_precision_t* p,
                                  const bool* used) {
  for (size_t r = 0; r < p->n_rules; r++) {
    if (used[r]) continue;
    const assay_nearest_t near = assay_plan_nearest(plan->model, p->rules[r].pattern);
    return ASSAY_ERROR(ASSAY_NOT_FOUND,
                       "the pattern '%s' matches no node and no output of a node%s",
                       p->rules[r].pattern, ASSAY_NEAREST_TEXT(&near));
  }
  return NULL;
}

// What the rules ask of the model's own nodes; *out NULL: there are none. Freed with assay_free.
static assay_status_t formats_asked(const assay_plan_t* plan, const rules_t* rules,
                                    assay_format_t** out) {
  const assay_precision_t* p = rules->precision;
  const assay_model_t* m = plan->model;
  if (!p->n_rules && !p->pinned && !p->given) return NULL;
  ASSAY_TRY(assay_new_array((size_t)m->n_node_ids, sizeof **out, out));
  for (size_t g = 0; g < m->n_graphs; g++) {
    for (size_t i = 0; i < m->graphs[g]->n_nodes; i++) {
      const assay_node_t* n = m->graphs[g]->nodes[i];
      const int rule = rule_of(plan, rules, &n);
      (*out)[n->id] = rule < 0 ? ASSAY_FORMAT_NONE : format_of(p, rule);
    }
  }
  return NULL;
}

// The passes of a fused plan. Of an unfused one only what gives a typed model's nodes formats, so
// that they can be in others: a value that is declared float16 stays that whatever computes it. The
// recorded layers follow from the model's own values.
static assay_status_t rewrite(const assay_plan_options_t* o, const rules_t* rules,
                              assay_plan_t* plan) {
  const assay_pass_options_t types = {.only = assay_pass_float_types.name};
  if (o && o->fused) {
    assay_pass_options_t passes = o->passes;
    assay_format_t* asked = NULL;
    ASSAY_TRY(formats_asked(plan, rules, &asked));
    passes.asked = asked;
    assay_status_t st = assay_passes_run(plan->model, &passes, &plan->rewrite);
    assay_free(asked);
    return st;
  }
  if ((o && o->recorded) || !assay_float_types_has_narrow(plan->model)) return NULL;
  return assay_passes_run(plan->model, &types, &plan->rewrite);
}

assay_status_t assay_plan_create(assay_model_t* model, const assay_precision_t* precision,
                                 const assay_plan_options_t* options, uint64_t seed,
                                 assay_plan_t** out) {
  assay_plan_t* plan = NULL;
  rules_t rules = {.precision = precision};
  ASSAY_TRY(ASSAY_NEW(&plan));
  plan->model = assay_model_retain(model);
  plan->layers.seed = seed;
  plan->layers.inject = options ? options->inject : NULL;
  plan->layers.draws = options ? options->draws : 0;
  plan->layers.fp32 = options ? options->fp32 : ASSAY_FP32_TIGHT;
  assay_status_t st = assay_arena_create(&plan->arena);
  if (!st) st = assay_new_array(precision->n_rules, sizeof *rules.used, &rules.used);
  if (!st) st = rewrite(options, &rules, plan);
  plan->layers.model = plan->rewrite ? plan->rewrite->model : model;
  const assay_recorded_t* recorded = options ? options->recorded : NULL;
  if (!st) st = recorded ? make_recorded_layers(plan, &rules, recorded) : make_layers(plan, &rules);
  if (!st) mark_rules_of_removed(plan, &rules);
  if (!st) st = check_rules(plan, precision, rules.used);
  if (!st) st = plan_keep_recipe(plan, precision, options, seed);
  assay_free(rules.used);
  if (st) return assay_plan_destroy(plan), st;
  *out = plan;
  return NULL;
}

void assay_plan_destroy(assay_plan_t* plan) {
  if (!plan) return;
  assay_arena_destroy(plan->arena);
  assay_rewrite_destroy(plan->rewrite);
  assay_model_release(plan->model);
  assay_free(plan);
}

const assay_layers_t* assay_plan_layers(const assay_plan_t* plan) { return &plan->layers; }
const assay_rewrite_t* assay_plan_rewrite(const assay_plan_t* plan) { return plan->rewrite; }

void assay_plan_node_formats(const assay_plan_t* plan, assay_format_t* formats) {
  for (int i = 0; i < plan->model->n_node_ids; i++) formats[i] = ASSAY_FORMAT_FP32;
  for (size_t l = 0; l < plan->layers.n_all_layers; l++) {
    const assay_layer_t* layer = &plan->layers.layers[l];
    for (size_t k = 0; k < layer->n_nodes; k++) {
      assay_origins_t o = assay_plan_origins(plan, &layer->nodes[k]);
      for (size_t i = 0; i < o.n; i++) formats[o.nodes[i]->id] = layer->format;
    }
  }
}
