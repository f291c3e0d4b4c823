// The page of a model or a plan: its graph, with all that is in it.
#include "report/model_page.h"

#include <string.h>

#include "base/memory.h"
#include "formats/format.h"
#include "io/json.h"
#include "report/model_data.h"
#include "report/page.h"

// ---- what is said of the whole ------------------------------------------------------------------

// A line "[what, text]" of the card; the text is taken.
static json_t* add_line(json_t* list, const char* what, assay_str_t* take_text) {
  json_t* text = take_text->failed ? NULL : assay_json_text(assay_str_get(take_text));
  if (text && !*assay_str_get(take_text)) {
    json_decref(text);
    assay_str_deinit(take_text);
    return list;
  }
  assay_str_deinit(take_text);
  return assay_json_push(list, json_pack("[s, o]", what, text));
}

static json_t* about_model(const assay_model_t* m) {
  json_t* list = json_array();
  assay_str_t text = {0};
  double elements, bytes;
  for (size_t i = 0; i < m->n_opsets; i++)
    assay_str_printf(&text, "%s%s %lld", i ? ", " : "",
                     *m->opsets[i].domain ? m->opsets[i].domain : "ai.onnx",
                     (long long)m->opsets[i].version);
  list = add_line(list, "operator sets", &text);
  assay_str_printf(&text, "%lld", (long long)m->ir_version);
  list = add_line(list, "IR version", &text);
  if (*m->producer_name) assay_str_printf(&text, "%s %s", m->producer_name, m->producer_version);
  list = add_line(list, "made by", &text);
  assay_model_parameters(m, &elements, &bytes);
  assay_str_printf(&text, "%.0f in %.1f MB", elements, bytes / 1e6);
  list = add_line(list, "parameters", &text);
  if (m->n_functions) assay_str_printf(&text, "%zu", m->n_functions);
  list = add_line(list, "functions", &text);
  assay_str_append(&text, m->doc);
  return add_line(list, "documentation", &text);
}

static void put_sizes(assay_str_t* out, const int64_t* sizes, int rank) {
  for (int i = 0; i < rank; i++) assay_str_printf(out, "%s%lld", i ? "x" : "", (long long)sizes[i]);
}

static json_t* add_profiles(json_t* list, const assay_engine_t* engine) {
  const assay_profile_t* p;
  const size_t n = assay_engine_profiles(engine, &p);
  for (size_t i = 0; i < n; i++) {
    assay_str_t what = {0}, text = {0};
    assay_str_printf(&what, "profile %d", p[i].profile);
    assay_str_printf(&text, "%s%s: ", p[i].input, p[i].values ? " (values)" : "");
    put_sizes(&text, p[i].min, p[i].rank);
    assay_str_append(&text, " to ");
    put_sizes(&text, p[i].max, p[i].rank);
    assay_str_append(&text, ", best ");
    put_sizes(&text, p[i].opt, p[i].rank);
    list = add_line(list, assay_str_get(&what), &text);
    assay_str_deinit(&what);
  }
  return list;
}

static json_t* about_plan(const assay_engine_t* engine, const assay_executor_t* ran) {
  json_t* list = json_array();
  assay_str_t text = {0};
  assay_str_append(&text, assay_engine_backend(engine)->name);
  list = add_line(list, "runs on", &text);
  assay_str_printf(&text, "%s besides the weights",
                   ASSAY_BYTES_TEXT(assay_executor_planned_bytes(ran)));
  list = add_line(list, "a run takes", &text);
  assay_str_append(&text, assay_fp32_name(assay_plan_layers(assay_engine_plan(engine))->fp32));
  list = add_line(list, "fp32", &text);
  return add_profiles(list, engine);
}

// ---- layers of a plan ---------------------------------------------------------------------------

static bool makes(const assay_layer_t* l, const assay_value_t* v) {
  for (size_t k = 0; k < l->n_nodes; k++)
    if (v->producer == l->nodes[k]) return true;
  return false;
}

static bool reads_before(const assay_layer_t* l, size_t node, size_t input) {
  for (size_t k = 0; k <= node; k++)
    for (size_t i = 0; i < (k < node ? l->nodes[k]->n_inputs : input); i++)
      if (l->nodes[k]->inputs[i] == l->nodes[node]->inputs[input]) return true;
  return false;
}

// What it reads from outside, each once, constants too.
static json_t* reads_json(assay_model_data_t* d, const assay_layer_t* l) {
  json_t* list = json_array();
  for (size_t k = 0; k < l->n_nodes; k++)
    for (size_t i = 0; i < l->nodes[k]->n_inputs; i++) {
      const assay_value_t* v = l->nodes[k]->inputs[i];
      if (!v || makes(l, v) || reads_before(l, k, i)) continue;
      list = assay_json_push(list, assay_model_data_value(d, v));
    }
  return list;
}

static json_t* makes_json(assay_model_data_t* d, const assay_layer_t* l, const bool* hidden) {
  json_t* list = json_array();
  for (size_t k = 0; k < l->n_nodes; k++)
    for (size_t i = 0; i < l->nodes[k]->n_outputs; i++) {
      const assay_value_t* v = l->nodes[k]->outputs[i];
      if (v && !hidden[v->id]) list = assay_json_push(list, assay_model_data_value(d, v));
    }
  return list;
}

static json_t* origins_json(const assay_plan_t* plan, const assay_layer_t* l) {
  json_t* list = json_array();
  for (size_t k = 0; k < l->n_nodes; k++) {
    const assay_origins_t o = assay_plan_origins(plan, &l->nodes[k]);
    for (size_t i = 0; i < o.n; i++)
      list = assay_json_push(list, assay_json_text(o.nodes[i]->label));
  }
  return list;
}

static void add_layer(assay_model_data_t* d, const assay_engine_t* engine,
                      const assay_executor_t* ran, size_t index) {
  const assay_plan_t* plan = assay_engine_plan(engine);
  const assay_layers_t* layers = assay_plan_layers(plan);
  const assay_layer_t* l = &layers->layers[index];
  const assay_format_t executed = assay_executor_executed(ran, index);
  assay_str_t op = {0};
  for (size_t k = 0; k < l->n_nodes; k++)
    assay_str_printf(&op, "%s%s", k ? "+" : "", l->nodes[k]->op_type);
  json_t* j = json_pack(
      "{s:o, s:o, s:o, s:o, s:o, s:s, s:s, s:o, s:o}", "name", assay_json_text(l->name), "op",
      assay_json_str(&op), "reads", reads_json(d, l), "makes",
      makes_json(d, l, layers->hidden_value), "nodes", origins_json(plan, l), "format",
      assay_format_name(l->format), "ran", executed ? assay_format_name(executed) : "", "tactic",
      assay_json_text(assay_executor_tactic(ran, index)), "reason", assay_json_text(l->reason));
  assay_str_deinit(&op);
  assay_model_data_layer(d, l->nodes, l->n_nodes, j);
}

// ---- the page -----------------------------------------------------------------------------------

// Ends of the top graph, but for inputs that an initializer stands in for.
static json_t* ends_json(assay_model_data_t* d, assay_value_t* const* values, size_t n) {
  json_t* list = json_array();
  for (size_t i = 0; i < n; i++)
    if (!(values[i]->is_input && values[i]->constant && !values[i]->is_output))
      list = assay_json_push(list, assay_model_data_value(d, values[i]));
  return list;
}

static void put_ends(assay_str_t* out, const char* what, assay_value_t* const* values, size_t n) {
  for (size_t i = 0; i < n; i++) {
    const assay_valtype_t* t = values[i]->type ? values[i]->type : values[i]->declared;
    assay_str_printf(out, "%s %s %s\n", what, values[i]->name, t ? ASSAY_VALTYPE_TEXT(t) : "");
  }
}

// Puts what was gathered into a page; the lists move there.
static assay_status_t put_page(assay_model_data_t* d, const char* kind, json_t* take_about,
                               assay_str_t* out) {
  const assay_graph_t* g = d->model->graph;
  const char* path = d->options->path;
  const char* slash = strrchr(path, '/');
  assay_page_t page = {0};
  assay_str_append(&page.title, slash ? slash + 1 : path);
  assay_str_printf(
      &page.text,
      "%s: a %s of %d layers. Its graph is drawn by JavaScript, which is switched off.\n",
      assay_str_get(&page.title), kind, d->n_layers);
  put_ends(&page.text, "input", g->inputs, g->n_inputs);
  put_ends(&page.text, "output", g->outputs, g->n_outputs);
  json_t *inputs = ends_json(d, g->inputs, g->n_inputs),
         *outputs = ends_json(d, g->outputs, g->n_outputs);
  page.data = json_pack("{s:s, s:s, s:o, s:o, s:b, s:b, s:o, s:o, s:o, s:o, s:o}", "schema",
                        "assay.page.model/1", "kind", kind, "model", assay_json_text(path), "name",
                        assay_json_text(g->name), "attrs", d->options->attrs, "weights",
                        d->options->weights, "about", take_about, "inputs", inputs, "outputs",
                        outputs, "values", d->values, "layers", d->layers);
  d->values = d->layers = NULL;
  assay_status_t st = assay_page_put(ASSAY_PAGE_MODEL, &page, out);
  assay_page_deinit(&page);
  return st;
}

assay_status_t assay_model_page(const assay_model_t* m, const assay_model_page_t* options,
                                assay_str_t* out) {
  assay_model_data_t d = {0};
  ASSAY_TRY(assay_model_data_init(m, options, &d));
  for (size_t i = 0; i < m->graph->n_nodes; i++) assay_model_data_node(&d, m->graph->nodes[i]);
  assay_status_t st = put_page(&d, "model", about_model(m), out);
  assay_model_data_deinit(&d);
  return st;
}

assay_status_t assay_plan_page(const assay_engine_t* engine, const assay_executor_t* ran,
                               const assay_model_page_t* options, assay_str_t* out) {
  const assay_layers_t* layers = assay_plan_layers(assay_engine_plan(engine));
  assay_model_data_t d = {0};
  ASSAY_TRY(assay_model_data_init(layers->model, options, &d));
  for (size_t i = 0; i < layers->n_layers; i++) add_layer(&d, engine, ran, i);
  assay_status_t st = put_page(&d, "plan", about_plan(engine, ran), out);
  assay_model_data_deinit(&d);
  return st;
}
