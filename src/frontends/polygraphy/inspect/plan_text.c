// A plan as text: inputs, outputs, memory, profiles, layers.
#include <string.h>

#include "base/shown.h"
#include "formats/format.h"
#include "frontends/polygraphy/inspect/model_text.h"
#include "frontends/trtexec/job.h"
#include "io/numpy_text.h"
#include "onnx/load.h"
#include "runtime/engine.h"
#include "runtime/executor.h"

typedef struct telling {
  assay_str_t* out;
  const assay_engine_t* engine;
  const assay_plan_t* plan;
  const assay_model_t* source;  // before the passes
  assay_executor_t* ran;
  trt_ends_t ends;  // that are not handed over in rows
  pg_show_t show;
} telling_t;

// As tensors of models are told, and the layout that an input or output is handed over in.
static void put_info(const telling_t* t, const assay_value_t* v, assay_str_t* out) {
  const trt_layout_t* in = v->is_input ? trt_ends_find(&t->ends, v->name, false) : trt_layouts;
  const trt_layout_t* made = v->is_output ? trt_ends_find(&t->ends, v->name, true) : trt_layouts;
  const trt_layout_t* l = in->spatial ? in : made;
  pg_put_tensor_info(out, v);
  if (!l->spatial || out->failed || !out->len || out->text[out->len - 1] != ']') return;
  out->text[--out->len] = '\0';
  assay_str_printf(out, ", format=%s]", l->word);
}

// ---- profiles -----------------------------------------------------------------------------------

// Sizes that a profile says; otherwise those of the model.
static void put_shape(const telling_t* t, const assay_value_t* v, const int64_t* dims, int rank) {
  const assay_valtype_t* type = v->declared ? v->declared : v->type;
  if (dims) {
    assay_numpy_print_shape(rank, dims, t->out);
    return;
  }
  int64_t known[ASSAY_MAX_RANK], d;
  if (!type || type->kind != ASSAY_KIND_TENSOR || !type->has_shape) {
    assay_str_append(t->out, "()");
    return;
  }
  for (int i = 0; i < type->rank; i++) known[i] = assay_dim_value(type->dims[i], &d) ? d : -1;
  assay_numpy_print_shape(type->rank, known, t->out);
}

static void put_tensor(const telling_t* t, int profile, const assay_value_t* v, size_t index,
                       size_t width) {
  const bool in = v->is_input;
  assay_str_printf(t->out, "    Tensor: %-*s %s, Index: %zu | ", (int)width, v->name,
                   in ? " (Input)" : "(Output)", index);
  if (!in) {
    assay_str_append(t->out, "Shape: ");
    put_shape(t, v, NULL, 0);
  } else {
    const assay_profile_t* list;
    const size_t n = assay_engine_profiles(t->engine, &list);
    const assay_profile_t* p = assay_profiles_find(list, n, v->name, profile);
    const int64_t* const shapes[] = {p ? p->min : NULL, p ? p->opt : NULL, p ? p->max : NULL};
    static const char* const names[] = {"Shapes: min=", ", opt=", ", max="};
    for (int i = 0; i < 3; i++) {
      assay_str_shown(t->out, names[i]);
      put_shape(t, v, shapes[i], p ? p->rank : 0);
    }
  }
  assay_str_append(t->out, "\n");
}

// Graph inputs without an initializer, then outputs; NULL: an initializer stands in.
static const assay_value_t* end_at(const assay_graph_t* g, size_t i) {
  const assay_value_t* v = i < g->n_inputs ? g->inputs[i] : g->outputs[i - g->n_inputs];
  return v->is_input && v->constant ? NULL : v;
}

static void put_profiles(const telling_t* t) {
  const assay_graph_t* g = t->source->graph;
  const size_t n_ends = g->n_inputs + g->n_outputs;
  const assay_profile_t* list;
  const size_t n_list = assay_engine_profiles(t->engine, &list);
  const int given = assay_profiles_count(list, n_list);
  const int count = given ? given : 1;  // fixed shapes are a profile, too
  size_t width = 0, n = 0;
  for (size_t i = 0; i < n_ends; i++) {
    const assay_value_t* v = end_at(g, i);
    if (v && strlen(v->name) > width) width = strlen(v->name);
    n += v != NULL;
  }
  assay_str_printf(t->out, "---- %d Profile(s) (%zu Tensor(s) Each) ----\n", count, n);
  for (int k = 0; k < count; k++) {
    size_t index = 0;
    assay_str_printf(t->out, "- Profile: %d\n", k);
    for (size_t i = 0; i < n_ends; i++)
      if (end_at(g, i)) put_tensor(t, k, end_at(g, i), index++, width + 8);
    assay_str_append(t->out, "\n");
  }
}

// ---- layers -------------------------------------------------------------------------------------

bool pg_is_made_within(const assay_layer_t* l, const assay_value_t* v) {
  for (size_t k = 0; k < l->n_nodes; k++)
    if (v->producer == l->nodes[k]) return true;
  return false;
}

// What a layer reads from outside, constants apart.
static void put_inputs(const telling_t* t, assay_str_t* out, const assay_layer_t* l) {
  size_t n = 0;
  for (size_t k = 0; k < l->n_nodes; k++)
    for (size_t i = 0; i < l->nodes[k]->n_inputs; i++) {
      const assay_value_t* v = l->nodes[k]->inputs[i];
      if (!v || v->constant || pg_is_made_within(l, v)) continue;
      assay_str_append(out, n++ ? ",\n " : "{");
      put_info(t, v, out);
      pg_put_stats(out, v, t->show.info);
    }
  if (n) assay_str_append(out, "}");
}

static void put_outputs(const telling_t* t, assay_str_t* out, const assay_node_t* last) {
  size_t n = 0;
  for (size_t i = 0; i < last->n_outputs; i++) {
    if (!last->outputs[i]) continue;
    assay_str_append(out, n++ ? ",\n " : "{");
    put_info(t, last->outputs[i], out);
    pg_put_stats(out, last->outputs[i], t->show.info);
  }
  if (n) assay_str_append(out, "}");
}

static void put_origin(const telling_t* t, const assay_layer_t* l) {
  bool first = true;
  assay_str_append(t->out, "    Origin = ");
  for (size_t k = 0; k < l->n_nodes; k++) {
    const assay_origins_t o = assay_plan_origins(t->plan, &l->nodes[k]);
    for (size_t i = 0; i < o.n; i++) {
      assay_str_printf(t->out, "%s%s", first ? "" : ", ", o.nodes[i]->label);
      first = false;
    }
  }
  assay_str_append(t->out, "\n");
}

static void put_layer(const telling_t* t, const assay_layer_t* l, size_t index) {
  assay_str_t in = {0}, made = {0}, op = {0};
  const assay_node_t* last = l->nodes[l->n_nodes - 1];
  const assay_format_t executed =
      t->ran ? assay_executor_executed(t->ran, index) : ASSAY_FORMAT_NONE;
  for (size_t k = 0; k < l->n_nodes; k++)
    assay_str_printf(&op, "%s%s", k ? "+" : "", l->nodes[k]->op_type);
  put_inputs(t, &in, l);
  put_outputs(t, &made, last);
  pg_put_layer(t->out, "Layer", index, l->name, assay_str_get(&op), assay_str_get(&in),
               assay_str_get(&made));
  t->out->failed |= in.failed | made.failed | op.failed;
  assay_str_deinit(&in);
  assay_str_deinit(&made);
  assay_str_deinit(&op);
  assay_str_printf(t->out, "    Format = %s", assay_format_name(l->format));
  if (executed && executed != l->format)
    assay_str_printf(t->out, ", computed in %s", assay_format_name(executed));
  assay_str_append(t->out, "\n");
  if (t->show.attrs) {
    assay_str_append(t->out, "    ---- Attributes ----\n");
    put_origin(t, l);
    if (t->ran) assay_str_printf(t->out, "    Tactic = %s\n", assay_executor_tactic(t->ran, index));
  }
  assay_str_append(t->out, "\n");
}

// ---- all of it ----------------------------------------------------------------------------------

static void put_ends(const telling_t* t, const char* what, assay_value_t* const* values, size_t n) {
  size_t count = 0;
  for (size_t i = 0; i < n; i++) count += !(values[i]->is_input && values[i]->constant);
  assay_str_printf(t->out, "---- %zu Engine %s(s) ----\n{", count, what);
  count = 0;
  for (size_t i = 0; i < n; i++) {
    if (values[i]->is_input && values[i]->constant) continue;
    assay_str_append(t->out, count++ ? ",\n " : "");
    put_info(t, values[i], t->out);
  }
  assay_str_append(t->out, "}\n\n");
}

static void put_memory(const telling_t* t) {
  uint64_t bytes;
  const size_t n = assay_engine_missing_weights(t->engine, &bytes);
  assay_str_append(t->out, "---- Memory ----\n");
  if (t->ran)
    assay_str_printf(t->out, "Device Memory: %zu bytes\n", assay_executor_planned_bytes(t->ran));
  else
    assay_str_printf(t->out,
                     "Stripped: %zu weights (%llu bytes) are missing; 'assay refit' puts them in\n",
                     n, (unsigned long long)bytes);
  assay_str_append(t->out, "\n");
}

static void put_plan(const telling_t* t) {
  const assay_layers_t* layers = assay_plan_layers(t->plan);
  const assay_graph_t* g = t->source->graph;
  assay_str_printf(t->out, "Name: %s | Plan for %s\n\n", g->name,
                   assay_engine_backend(t->engine)->name);
  put_ends(t, "Input", g->inputs, g->n_inputs);
  put_ends(t, "Output", g->outputs, g->n_outputs);
  put_memory(t);
  put_profiles(t);
  assay_str_printf(t->out, "---- %zu Layer(s) ----\n", layers->n_layers);
  for (size_t i = 0; t->show.layers && i < layers->n_layers; i++)
    put_layer(t, &layers->layers[i], i);
}

assay_status_t pg_put_plan(assay_str_t* out, assay_engine_t* engine, pg_show_t show) {
  telling_t t = {.out = out, .engine = engine, .plan = assay_engine_plan(engine), .show = show};
  assay_model_t *source = NULL, *ready = NULL;
  assay_arena_t* arena = NULL;
  ASSAY_TRY(assay_arena_create(&arena));
  assay_status_t st = trt_note_layouts(engine, arena, &t.ends);
  if (!st) st = assay_engine_source(engine, &source);
  if (!st) st = assay_onnx_prepare_known(source, 0, NULL, &ready);
  // Outputs have the sizes that follow from those of the inputs.
  for (size_t i = 0; !st && i < ready->graph->n_outputs; i++)
    if (ready->graph->outputs[i]->type)
      ready->graph->outputs[i]->declared = ready->graph->outputs[i]->type;
  t.source = ready;
  // Which kernels run is known once they have; without its weights a plan does not run.
  if (!st && !assay_engine_missing_weights(engine, NULL)) st = cli_engine_try(engine, 0, &t.ran);
  if (!st) put_plan(&t);
  assay_executor_destroy(t.ran);
  assay_model_release(ready);
  assay_model_release(source);
  trt_ends_deinit(&t.ends);
  assay_arena_destroy(arena);
  return st;
}
