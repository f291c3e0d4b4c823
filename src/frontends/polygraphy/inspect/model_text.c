// A model as text: what inspect model shows.
#include "frontends/polygraphy/inspect/model_text.h"

#include <ctype.h>
#include <string.h>

#include "base/shown.h"
#include "frontends/polygraphy/model.h"
#include "io/numpy_text.h"

void pg_put_indented(assay_str_t* out, const char* text, int level) {
  for (const char* at = text;;) {
    const size_t n = strcspn(at, "\n");
    assay_str_printf(out, "%*s", 4 * level, "");
    assay_str_append_n(out, at, n);
    if (!at[n] || !at[n + 1]) return;
    assay_str_append(out, "\n");
    at += n + 1;
  }
}

void pg_trim(assay_str_t* text) {
  while (text->len && isspace((unsigned char)text->text[text->len - 1]))
    text->text[--text->len] = 0;
}

// Moves a text into another one, indented.
static void move_indented(assay_str_t* out, assay_str_t* text, int level) {
  pg_put_indented(out, assay_str_get(text), level);
  out->failed |= text->failed;
  assay_str_deinit(text);
}

// ---- values -------------------------------------------------------------------------------------

// An initializer of this graph, which no node makes.
static bool is_initializer(const assay_graph_t* g, const assay_value_t* v) {
  return v->constant && !v->producer && v->graph == g;
}

static void put_sizes(assay_str_t* out, int rank, const int64_t* dims) {
  for (int i = 0; i < rank; i++) assay_str_printf(out, "%s%lld", i ? ", " : "", (long long)dims[i]);
}

// The name of a value, with the type that the file says; what Constant nodes make has none.
static void put_value(assay_str_t* out, const assay_value_t* v) {
  if (!v) return;
  if (v->producer && !v->declared)
    assay_str_shown(out, v->name);
  else
    pg_put_tensor_info(out, v);
}

void pg_put_stats(assay_str_t* out, const assay_value_t* v, const assay_tensor_info_t* info) {
  // Runs save values of the graph at the top only.
  const assay_tensor_stats_t* s =
      v && !v->graph->outer ? assay_tensor_info_find(info, v->name) : NULL;
  if (s) assay_str_printf(out, " | Stats: %s", *s->text ? s->text : "<not numbers>");
}

// "{a [...],\n b [...]}"; NULL entries were left out. graph: its initializers are marked; or NULL.
static void put_values(assay_str_t* out, assay_value_t* const* values, size_t n,
                       const assay_graph_t* graph, const assay_tensor_info_t* info) {
  assay_str_append(out, "{");
  for (size_t i = 0; i < n; i++) {
    if (i) assay_str_append(out, ",\n ");
    if (graph && values[i] && is_initializer(graph, values[i]))
      assay_str_append(out, "Initializer | ");
    put_value(out, values[i]);
    pg_put_stats(out, values[i], info);
  }
  assay_str_append(out, "}");
}

// Graph inputs that callers must give, or outputs.
static void put_ends(assay_str_t* out, const char* kind, const char* what,
                     assay_value_t* const* values, size_t n) {
  assay_str_t list = {0};
  size_t count = 0;
  for (size_t i = 0; i < n; i++) {
    if (values[i]->constant && values[i]->is_input) continue;
    assay_str_append(&list, count++ ? ",\n " : "");
    put_value(&list, values[i]);
  }
  assay_str_printf(out, "---- %zu %s %s(s) ----\n{" ASSAY_LINES "}\n\n", count, kind, what,
                   assay_str_get(&list));
  out->failed |= list.failed;
  assay_str_deinit(&list);
}

// ---- weights ------------------------------------------------------------------------------------

static void put_wide(assay_str_t* out, const assay_tensor_t* t) {
  const bool is_float = t->store == ASSAY_STORE_F64;
  const assay_numpy_array_t a = {.type = t->type,
                                 .rank = t->rank,
                                 .dims = t->dims,
                                 .n = t->size,
                                 .f = is_float ? assay_f64(t) : NULL,
                                 .i = is_float ? NULL : assay_i64(t)};
  if (is_float || t->store == ASSAY_STORE_I64)
    assay_numpy_print(&a, &ASSAY_NUMPY_STYLE, out);
  else
    assay_str_append(out, "<not numbers>");
}

static void put_elements(assay_str_t* out, assay_tensor_t* t) {
  assay_tensor_t* wide = NULL;
  assay_status_t st = assay_tensor_widen(t, &wide);
  if (st)
    assay_str_append(out, "<error: failed to load weights>");
  else
    put_wide(out, wide);
  assay_status_free(st);
  assay_tensor_release(wide);
}

static void put_initializers(assay_str_t* out, const assay_graph_t* g, pg_show_t show) {
  assay_str_printf(out, "---- %zu Initializer(s) ----\n", g->n_initializers);
  if (show.weights) {
    for (size_t i = 0; i < g->n_initializers; i++) {
      const assay_value_t* v = g->initializers[i];
      assay_str_t elements = {0};
      assay_str_printf(out, "Initializer | %s [dtype=%s, shape=[", v->name,
                       assay_numpy_type_name(v->constant->type));
      put_sizes(out, v->constant->rank, v->constant->dims);
      assay_str_append(out, "]] | Values:\n");
      if (v->is_stripped)
        assay_str_append(&elements, "<stripped>");
      else
        put_elements(&elements, v->constant);
      move_indented(out, &elements, 1);
      assay_str_append(out, "\n\n");
    }
    if (!g->n_initializers) assay_str_append(out, "{}\n\n");
  } else if (show.layers) {
    put_values(out, g->initializers, g->n_initializers, NULL, NULL);
    assay_str_append(out, "\n\n");
  } else {
    assay_str_append(out, "\n");
  }
}

// ---- attributes ---------------------------------------------------------------------------------

static void put_graph(assay_str_t* out, const assay_graph_t* g, pg_show_t show);

static void put_quoted(assay_str_t* out, const assay_string_t* s) {
  assay_str_append(out, "'");
  assay_str_shown_n(out, s->text, s->len);
  assay_str_append(out, "'");
}

// Of attributes that name a type the type is shown.
static void put_int(assay_str_t* out, const assay_attr_t* a) {
  const bool is_type = strcmp(a->name, "to") == 0 || strcmp(a->name, "dtype") == 0 ||
                       strcmp(a->name, "target_type") == 0;
  if (is_type && a->u.i > 0 && a->u.i < ASSAY_TYPE_COUNT)
    assay_str_append(
        out, a->u.i == ASSAY_TYPE_STRING ? "string" : assay_numpy_type_name((assay_type_t)a->u.i));
  else
    assay_str_printf(out, "%lld", (long long)a->u.i);
}

static void put_tensor(assay_str_t* out, assay_tensor_t* t, pg_show_t show) {
  assay_str_t elements = {0};
  assay_str_printf(out, "Tensor: [dtype=%s, shape=[", assay_numpy_type_name(t->type));
  put_sizes(out, t->rank, t->dims);
  assay_str_append(out, "]]");
  if (!show.weights) return;
  assay_str_append(out, " | Values:\n");
  put_elements(&elements, t);
  move_indented(out, &elements, 1);
}

static void put_list(assay_str_t* out, const assay_attr_t* a) {
  assay_str_append(out, "[");
  for (size_t i = 0; i < a->n; i++) {
    if (i) assay_str_append(out, ", ");
    if (a->type == ASSAY_ATTR_INTS)
      assay_str_printf(out, "%lld", (long long)a->u.ints[i]);
    else if (a->type == ASSAY_ATTR_FLOATS)
      assay_numpy_print_float(ASSAY_TYPE_DOUBLE, (double)a->u.floats[i], out);
    else
      put_quoted(out, &a->u.strings[i]);
  }
  assay_str_append(out, "]");
}

// False: attributes of this kind are not shown.
static bool put_attr_value(assay_str_t* out, const assay_attr_t* a, pg_show_t show) {
  assay_str_t body = {0};
  switch (a->type) {
    case ASSAY_ATTR_FLOAT:
      assay_numpy_print_float(ASSAY_TYPE_DOUBLE, (double)a->u.f, out);
      return true;
    case ASSAY_ATTR_INT:
      put_int(out, a);
      return true;
    case ASSAY_ATTR_STRING:
      assay_str_shown_n(out, a->u.s.text, a->u.s.len);
      return true;
    case ASSAY_ATTR_TENSOR:
      put_tensor(out, a->u.t, show);
      return true;
    case ASSAY_ATTR_GRAPH:
      show.level += 2;
      put_graph(&body, a->u.g, show);
      assay_str_append(out, "\n");
      move_indented(out, &body, show.level);
      return true;
    case ASSAY_ATTR_FLOATS:
    case ASSAY_ATTR_INTS:
    case ASSAY_ATTR_STRINGS:
      put_list(out, a);
      return true;
    default:
      return false;
  }
}

static void put_attrs(assay_str_t* out, const assay_node_t* n, pg_show_t show) {
  if (!n->n_attrs) return;
  assay_str_append(out, "    ---- Attributes ----\n");
  for (size_t i = 0; i < n->n_attrs; i++) {
    const assay_attr_t* a = &n->attrs[i];
    assay_str_t line = {0};
    if (*a->ref) continue;
    assay_str_printf(&line, "%s%s%s = ", n->name, *n->name ? "." : "", a->name);
    const bool shown = put_attr_value(&line, a, show);
    if (shown) {
      move_indented(out, &line, 1);
      assay_str_append(out, "\n");
    }
    assay_str_deinit(&line);
  }
}

// ---- nodes and graphs ---------------------------------------------------------------------------

void pg_put_layer(assay_str_t* out, const char* kind, size_t index, const char* name,
                  const char* op, const char* in, const char* made) {
  assay_str_t arrow = {0};
  // Without inputs or outputs all of it stands on a line.
  const bool both = *in && *made;
  assay_str_printf(out, "%s %-4zu | %s [Op: %s]\n", kind, index, name, op);
  pg_put_indented(out, *in ? in : "{}", 1);
  if (both) assay_str_append(out, "\n");
  assay_str_append(&arrow, " -> ");
  // Further lines stand below the first one's brace.
  for (const char* c = *made ? made : "{}"; *c; c++) {
    assay_str_append_n(&arrow, c, 1);
    if (*c == '\n' && both) assay_str_append(&arrow, "    ");
  }
  move_indented(out, &arrow, both ? 1 : 0);
  assay_str_append(out, "\n");
}

static void put_node(assay_str_t* out, const assay_node_t* n, size_t index, pg_show_t show) {
  assay_str_t in = {0}, made = {0};
  if (n->n_inputs) put_values(&in, n->inputs, n->n_inputs, n->graph, show.info);
  if (n->n_outputs) put_values(&made, n->outputs, n->n_outputs, n->graph, show.info);
  pg_put_layer(out, "Node", index, n->name, n->op_type, assay_str_get(&in), assay_str_get(&made));
  out->failed |= in.failed | made.failed;
  assay_str_deinit(&in);
  assay_str_deinit(&made);
  if (show.attrs) put_attrs(out, n, show);
  assay_str_append(out, "\n");
}

static void put_graph(assay_str_t* out, const assay_graph_t* g, pg_show_t show) {
  const char* kind = g->outer ? "Subgraph" : "Graph";
  if (show.attrs && *g->doc)
    assay_str_printf(out, "---- Docstring ----\n" ASSAY_LINES "\n\n", g->doc);
  put_ends(out, kind, "Input", g->inputs, g->n_inputs);
  put_ends(out, kind, "Output", g->outputs, g->n_outputs);
  put_initializers(out, g, show);
  assay_str_printf(out, "---- %zu Node(s) ----\n", g->n_nodes);
  for (size_t i = 0; show.layers && i < g->n_nodes; i++) put_node(out, g->nodes[i], i, show);
}

static void put_opsets(assay_str_t* out, const assay_model_t* m) {
  size_t n = 0;
  assay_str_printf(out, "ONNX Opset: %lld", (long long)assay_model_opset(m, ""));
  for (size_t i = 0; i < m->n_opsets; i++) {
    const char* domain = m->opsets[i].domain;
    if (!*domain || strcmp(domain, "ai.onnx") == 0) continue;
    assay_str_printf(out, "%s'%s': %lld", n++ ? ", " : " | Other Opsets: {", domain,
                     (long long)m->opsets[i].version);
  }
  if (n) assay_str_append(out, "}");
}

void pg_put_model(assay_str_t* out, const assay_model_t* m, pg_show_t show) {
  assay_str_printf(out, "Name: %s | ", m->graph->name);
  put_opsets(out, m);
  assay_str_append(out, "\n\n");
  put_graph(out, m->graph, show);
}
