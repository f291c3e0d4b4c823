// What is in a model or a plan, as the data of its page: "assay.page.model/1".
#include "report/model_data.h"

#include <string.h>

#include "compare/numeric_text.h"
#include "io/json.h"

// ---- values -------------------------------------------------------------------------------------

static json_t* text_of(assay_str_t* take_text) {
  json_t* j = take_text->failed ? NULL : assay_json_text(assay_str_get(take_text));
  assay_str_deinit(take_text);
  return j;
}

static json_t* stats_json(const assay_tensor_stats_t* s) {
  const assay_numeric_stats_t* n = &s->numbers;
  json_t* shape = json_array();
  for (int i = 0; i < s->rank; i++)
    shape = assay_json_push(shape, json_integer((json_int_t)s->dims[i]));
  json_t* j = json_pack("{s:s, s:o, s:o}", "type", assay_numpy_type_name(s->type), "shape", shape,
                        "text", assay_json_text(s->text));
  if (!*s->text) return j;
  const struct {
    const char* name;
    double x;
  } numbers[] = {{"mean", n->mean},         {"std-dev", n->deviation},
                 {"min", n->min.x},         {"max", n->max.x},
                 {"median", n->median},     {"avg-magnitude", n->magnitude},
                 {"variance", n->variance}, {"p90", n->p90},
                 {"p95", n->p95},           {"p99", n->p99}};
  for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
    j = assay_json_put(j, numbers[i].name, assay_json_number(numbers[i].x));
  return j;
}

static json_t* value_json(const assay_model_data_t* d, const assay_value_t* v) {
  const assay_valtype_t* type = v->type ? v->type : v->declared;
  const bool constant = v->constant && !v->producer;
  const assay_tensor_stats_t* s =
      v->graph->outer ? NULL : assay_tensor_info_find(d->options->info, v->name);
  assay_str_t text = {0};
  if (type) {
    assay_str_append(&text, ASSAY_VALTYPE_TEXT(type));
  } else if (constant) {
    assay_str_printf(&text, "%s[", assay_type_name(v->constant->type));
    for (int i = 0; i < v->constant->rank; i++)
      assay_str_printf(&text, "%s%lld", i ? ", " : "", (long long)v->constant->dims[i]);
    assay_str_append(&text, "]");
  }
  json_t* j = json_pack("{s:o, s:o}", "name", assay_json_text(v->name), "type", text_of(&text));
  if (constant) j = assay_json_put(j, "constant", json_true());
  if (constant && d->options->weights) {
    if (v->is_stripped)
      assay_str_append(&text, "stripped from the file");
    else
      assay_elements_text(v->constant, &text);
    j = assay_json_put(j, "elements", text_of(&text));
  }
  return s ? assay_json_put(j, "stats", stats_json(s)) : j;
}

json_t* assay_model_data_value(assay_model_data_t* d, const assay_value_t* v) {
  if (!v) return json_null();
  if (d->at[v->id] < 0) {
    d->at[v->id] = d->n_values++;
    d->values = assay_json_push(d->values, value_json(d, v));
  }
  return json_integer(d->at[v->id]);
}

json_t* assay_model_data_values(assay_model_data_t* d, assay_value_t* const* values, size_t n) {
  json_t* list = json_array();
  for (size_t i = 0; i < n; i++) list = assay_json_push(list, assay_model_data_value(d, values[i]));
  return list;
}

// ---- layers -------------------------------------------------------------------------------------

// The nodes of a body are layers of their own, before the one that has it.
static json_t* body_json(assay_model_data_t* d, const char* name, const assay_graph_t* g) {
  json_t* inside = json_array();
  for (size_t i = 0; i < g->n_nodes; i++) {
    assay_model_data_node(d, g->nodes[i]);
    inside = assay_json_push(inside, json_integer(d->n_layers - 1));
  }
  return json_pack("{s:o, s:o, s:o, s:o}", "name", assay_json_text(name), "inputs",
                   assay_model_data_values(d, g->inputs, g->n_inputs), "outputs",
                   assay_model_data_values(d, g->outputs, g->n_outputs), "layers", inside);
}

static json_t* bodies_of(assay_model_data_t* d, json_t* list, const assay_node_t* n) {
  for (size_t i = 0; i < n->n_attrs; i++) {
    const assay_attr_t* a = &n->attrs[i];
    if (*a->ref) continue;
    if (a->type == ASSAY_ATTR_GRAPH) list = assay_json_push(list, body_json(d, a->name, a->u.g));
    for (size_t k = 0; a->type == ASSAY_ATTR_GRAPHS && k < a->n; k++)
      list = assay_json_push(list, body_json(d, a->name, a->u.graphs[k]));
  }
  return list;
}

// [name, text] of each; where a layer has several nodes, the name begins with the node's.
static json_t* attrs_of(const assay_model_data_t* d, json_t* list, const assay_node_t* n,
                        bool several) {
  for (size_t i = 0; d->options->attrs && i < n->n_attrs; i++) {
    const assay_attr_t* a = &n->attrs[i];
    assay_str_t name = {0}, text = {0};
    if (a->type == ASSAY_ATTR_GRAPH || a->type == ASSAY_ATTR_GRAPHS) continue;
    assay_str_printf(&name, "%s%s%s", several ? n->label : "", several ? "." : "", a->name);
    assay_attr_text(a, d->options->weights, &text);
    list = assay_json_push(list, json_pack("[o, o]", text_of(&name), text_of(&text)));
  }
  return list;
}

void assay_model_data_layer(assay_model_data_t* d, const assay_node_t* const* nodes, size_t n_nodes,
                            json_t* take_layer) {
  json_t *bodies = json_array(), *attrs = json_array();
  for (size_t k = 0; k < n_nodes; k++) {
    bodies = bodies_of(d, bodies, nodes[k]);
    attrs = attrs_of(d, attrs, nodes[k], n_nodes > 1);
  }
  take_layer = assay_json_put(take_layer, "bodies", bodies);
  take_layer = assay_json_put(take_layer, "attrs", attrs);
  d->layers = assay_json_push(d->layers, take_layer);
  d->n_layers++;
}

void assay_model_data_node(assay_model_data_t* d, const assay_node_t* n) {
  json_t* j = json_pack("{s:o, s:o, s:o, s:o, s:o, s:o}", "name", assay_json_text(n->label), "op",
                        assay_json_text(n->op_type), "domain", assay_json_text(n->domain), "doc",
                        assay_json_text(n->doc), "reads",
                        assay_model_data_values(d, n->inputs, n->n_inputs), "makes",
                        assay_model_data_values(d, n->outputs, n->n_outputs));
  assay_model_data_layer(d, &n, 1, j);
}

// ---- making -------------------------------------------------------------------------------------

assay_status_t assay_model_data_init(const assay_model_t* m, const assay_model_page_t* options,
                                     assay_model_data_t* out) {
  const size_t n = (size_t)m->n_values;
  *out = (assay_model_data_t){
      .model = m, .options = options, .values = json_array(), .layers = json_array()};
  assay_status_t st = assay_new_array(n ? n : 1, sizeof *out->at, &out->at);
  if (st) return assay_model_data_deinit(out), st;
  for (size_t i = 0; i < n; i++) out->at[i] = -1;
  return NULL;
}

void assay_model_data_deinit(assay_model_data_t* d) {
  json_decref(d->values);
  json_decref(d->layers);
  assay_free(d->at);
  *d = (assay_model_data_t){0};
}
