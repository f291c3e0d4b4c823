#include "plan/plan.h"

#include <string.h>

#include "base/alloc.h"
#include "formats/format.h"

struct assay_plan {
  assay_arena_t* arena;
  assay_model_t* model;
  assay_layers_t layers;
};

static bool rule_matches(const assay_precision_rule_t* rule, const assay_node_t* n) {
  if (assay_glob_match(rule->pattern, n->label)) return true;
  for (size_t i = 0; i < n->n_outputs; i++)
    if (n->outputs[i] && assay_glob_match(rule->pattern, n->outputs[i]->name)) return true;
  return false;
}

// The label that shares the most with what was looked for, from its start.
static const char* nearest_label(const assay_model_t* m, const char* pattern) {
  const char* best = NULL;
  size_t best_common = 0;
  for (size_t g = 0; g < m->n_graphs; g++) {
    for (size_t i = 0; i < m->graphs[g]->n_nodes; i++) {
      const char* label = m->graphs[g]->nodes[i]->label;
      size_t common = 0;
      while (label[common] && label[common] == pattern[common]) common++;
      if (common > best_common) {
        best = label;
        best_common = common;
      }
    }
  }
  return best;
}

static assay_format_t default_accumulator(assay_format_t format) {
  return format == ASSAY_FORMAT_FP64 ? ASSAY_FORMAT_FP64 : ASSAY_FORMAT_FP32;
}

// One layer for one node, in the format that the last matching rule says.
static void make_layer(const assay_precision_t* p, const assay_node_t** node, bool* used,
                       assay_layer_t* layer) {
  const assay_node_t* n = *node;
  *layer = (assay_layer_t){.name = n->label, .nodes = node, .n_nodes = 1, .format = p->format,
                           .reason = p->format == ASSAY_FORMAT_FP32 ? "as declared" : "--precision"};
  for (size_t r = 0; r < p->n_rules; r++) {
    if (!rule_matches(&p->rules[r], n)) continue;
    used[r] = true;
    layer->format = p->rules[r].format;
    layer->reason = p->rules[r].pattern;
  }
  bool own = p->accumulator && layer->format != ASSAY_FORMAT_FP32 && layer->format != ASSAY_FORMAT_FP64;
  layer->accumulator = own ? p->accumulator : default_accumulator(layer->format);
}

static assay_status_t make_layers(assay_plan_t* plan, const assay_precision_t* p, bool* used) {
  const assay_model_t* m = plan->model;
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
  size_t k = 0;
  for (int pass = 0; pass < 2; pass++) {
    for (size_t g = 0; g < m->n_graphs; g++) {
      const assay_graph_t* graph = m->graphs[g];
      if ((graph == m->graph) != (pass == 0)) continue;
      for (size_t i = 0; i < graph->n_nodes; i++, k++) {
        nodes[k] = graph->nodes[i];
        of_node[nodes[k]->id] = (int)k;
        make_layer(p, &nodes[k], used, &layers[k]);
      }
    }
  }
  plan->layers.model = m;
  plan->layers.layers = layers;
  plan->layers.n_layers = m->graph->n_nodes;
  plan->layers.layer_of_node = of_node;
  plan->layers.hidden_value = hidden;
  return NULL;
}

static assay_status_t check_rules(const assay_plan_t* plan, const assay_precision_t* p,
                                  const bool* used) {
  for (size_t r = 0; r < p->n_rules; r++) {
    if (used[r]) continue;
    const char* near = nearest_label(plan->model, p->rules[r].pattern);
    return ASSAY_ERROR(ASSAY_NOT_FOUND,
                       "the pattern '%s' matches no node and no output of a node%s%s%s",
                       p->rules[r].pattern, near ? "; the nearest name is '" : "",
                       near ? near : "", near ? "'" : "");
  }
  return NULL;
}

assay_status_t assay_plan_create(assay_model_t* model, const assay_precision_t* precision,
                                 uint64_t seed, assay_plan_t** out) {
  assay_plan_t* plan = NULL;
  bool* used = NULL;
  ASSAY_TRY(ASSAY_NEW(&plan));
  plan->model = assay_model_retain(model);
  plan->layers.seed = seed;
  assay_status_t st = assay_arena_create(&plan->arena);
  if (!st) st = assay_new_array(precision->n_rules, sizeof *used, &used);
  if (!st) st = make_layers(plan, precision, used);
  if (!st) st = check_rules(plan, precision, used);
  assay_free(used);
  if (st) return assay_plan_destroy(plan), st;
  *out = plan;
  return NULL;
}

void assay_plan_destroy(assay_plan_t* plan) {
  if (!plan) return;
  assay_arena_destroy(plan->arena);
  assay_model_release(plan->model);
  assay_free(plan);
}

const assay_layers_t* assay_plan_layers(const assay_plan_t* plan) { return &plan->layers; }
