// assay inspect: what is in a model, a file of arrays, or a plan.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/functions.h"
#include "base/shown.h"
#include "cli/inputs.h"
#include "cli/plan_options.h"
#include "cli/verbs/inspect/inspect_engine.h"
#include "cli/verbs/inspect/inspect_page.h"
#include "cli/verbs/inspect/inspect_values.h"
#include "data/tensor_files.h"
#include "formats/error_sum.h"
#include "formats/format.h"
#include "onnx/onnx.h"
#include "ops/cost.h"
#include "ops/infer.h"
#include "plan/plan.h"
#include "runtime/engine.h"

typedef struct args {
  const char *what, *file, *json, *precision, *layer_precision, *explain, *report, *serve;
  opt_list_t no_pass, ops;
  cli_shape_args_t shape;
  bool allow_hard_links;
  bool fused;
  double timeout;
} args_t;

// ---- model --------------------------------------------------------------------------------------

static bool is_supported(const assay_node_t* n) { return n->function || (n->op && n->op->eval); }

// Whether the operator is one that nobody has told of.
static bool is_unknown(const assay_node_t* n) {
  bool known = n->function || n->schema;
  if (!known) assay_schema_find(n->domain, n->op_type, INT64_MAX, &known);
  return !known;
}

static json_t* names_json(assay_value_t* const* values, size_t n) {
  json_t* list = json_array();
  for (size_t i = 0; i < n; i++)
    list = assay_json_push(list, assay_json_text(values[i] ? values[i]->name : ""));
  return list;
}

// Open sizes of the graph's inputs count as 1.
typedef struct open {
  const assay_graph_t* graph;
  bool met;
} open_t;

static bool one_if_open(void* user, const char* name, int64_t* out) {
  open_t* open = user;
  for (size_t i = 0; i < open->graph->n_inputs; i++) {
    const assay_valtype_t* t = open->graph->inputs[i]->type;
    for (int d = 0; t && t->kind == ASSAY_KIND_TENSOR && d < t->rank; d++) {
      const char* input = t->dims[d] ? assay_dim_name(t->dims[d]) : NULL;
      if (!input || strcmp(input, name) != 0) continue;
      *out = 1;
      return open->met = true;
    }
  }
  return false;
}

// Null where shapes are not known; open sizes count as 1.
static json_t* flops_json(const assay_graph_t* g, const assay_node_t* n) {
  assay_cost_t cost;
  bool known;
  open_t open = {g, false};
  assay_status_t st = assay_cost_of_node(n, one_if_open, &open, &known, &cost);
  const bool ok = !st && known;
  assay_status_free(st);
  return ok ? json_real(cost.flops) : json_null();
}

static json_t* model_json(const assay_model_t* m) {
  const assay_graph_t* g = m->graph;
  json_t *inputs = cli_values_json(g->inputs, g->n_inputs),
         *outputs = cli_values_json(g->outputs, g->n_outputs), *nodes = json_array(),
         *opsets = json_object();
  for (size_t i = 0; i < m->n_opsets; i++)
    opsets = assay_json_put(opsets, *m->opsets[i].domain ? m->opsets[i].domain : "ai.onnx",
                            json_integer(m->opsets[i].version));
  for (size_t i = 0; i < g->n_nodes; i++) {
    const assay_node_t* n = g->nodes[i];
    nodes = assay_json_push(
        nodes, json_pack("{s:o, s:o, s:o, s:o, s:o, s:b, s:b, s:o}", "name",
                         assay_json_text(n->label), "op", assay_json_text(n->op_type), "domain",
                         assay_json_text(n->domain), "inputs", names_json(n->inputs, n->n_inputs),
                         "outputs", names_json(n->outputs, n->n_outputs), "supported",
                         is_supported(n), "unknown", is_unknown(n), "flops", flops_json(g, n)));
  }
  return json_pack("{s:s, s:o, s:I, s:o, s:o, s:o, s:o, s:o}", "schema", "assay.inspect.model/1",
                   "graph", assay_json_text(g->name), "ir_version", (json_int_t)m->ir_version,
                   "producer", assay_json_text(m->producer_name), "opsets", opsets, "inputs",
                   inputs, "outputs", outputs, "nodes", nodes);
}

typedef struct op_count {
  const char *domain, *name;
  int since;
  size_t n;
  bool supported, unknown;
} op_count_t;

static int by_count(const void* a, const void* b) {
  const op_count_t *x = a, *y = b;
  if (x->n != y->n) return x->n < y->n ? 1 : -1;
  return strcmp(x->name, y->name);
}

static void count_node(op_count_t* counts, size_t* n_counts, const assay_node_t* n) {
  int since = n->schema ? n->schema->since : 0;
  size_t k = 0;
  while (k < *n_counts && (strcmp(counts[k].name, n->op_type) != 0 ||
                           strcmp(counts[k].domain, n->domain) != 0 || counts[k].since != since))
    k++;
  if (k == *n_counts)
    counts[(*n_counts)++] =
        (op_count_t){n->domain, n->op_type, since, 0, is_supported(n), is_unknown(n)};
  counts[k].n++;
}

// The nodes of operators that cannot be run, and what to do about those that nobody knows.
static void print_unsupported(const assay_model_t* m) {
  bool unknown = false;
  for (size_t g = 0; g < m->n_graphs; g++)
    for (size_t i = 0; i < m->graphs[g]->n_nodes; i++) {
      const assay_node_t* n = m->graphs[g]->nodes[i];
      if (is_supported(n)) continue;
      assay_print(stdout, "  %s: node '%s' (%s%s%s)\n", is_unknown(n) ? "unknown" : "not supported",
                  n->label, n->domain, *n->domain ? "." : "", n->op_type);
      unknown |= is_unknown(n);
    }
  if (unknown)
    puts("  unknown operators do not run: give the library that has them with --ops LIB.so");
}

static assay_status_t print_operators(const assay_model_t* m) {
  size_t total = 0, n = 0;
  op_count_t* counts = NULL;
  for (size_t g = 0; g < m->n_graphs; g++) total += m->graphs[g]->n_nodes;
  ASSAY_TRY(assay_new_array(total, sizeof *counts, &counts));
  for (size_t g = 0; g < m->n_graphs; g++)
    for (size_t i = 0; i < m->graphs[g]->n_nodes; i++)
      count_node(counts, &n, m->graphs[g]->nodes[i]);
  if (n) qsort(counts, n, sizeof *counts, by_count);
  printf("operators  %zu nodes, %zu operators\n", total, n);
  for (size_t i = 0; i < n; i++) {
    char since[24] = "";
    if (!counts[i].unknown) snprintf(since, sizeof since, "-%d", counts[i].since);
    assay_print(stdout, "  %6zu  %s%s%s%s%s\n", counts[i].n, counts[i].domain,
                *counts[i].domain ? "." : "", counts[i].name, since,
                counts[i].unknown     ? "   UNKNOWN"
                : counts[i].supported ? ""
                                      : "   NOT SUPPORTED");
  }
  print_unsupported(m);
  assay_free(counts);
  return NULL;
}

static void print_parameters(const assay_model_t* m) {
  double elements, bytes;
  assay_model_parameters(m, &elements, &bytes);
  printf("parameters %.0f in %.1f MB\n", elements, bytes / 1e6);
}

// Of all nodes, bodies once; sizes that are open count as 1.
static assay_status_t print_flops(const assay_model_t* m) {
  double flops = 0;
  size_t unknown = 0;
  open_t open = {m->graph, false};
  for (size_t g = 0; g < m->n_graphs; g++)
    for (size_t i = 0; i < m->graphs[g]->n_nodes; i++) {
      assay_cost_t cost;
      bool known;
      ASSAY_TRY(assay_cost_of_node(m->graphs[g]->nodes[i], one_if_open, &open, &known, &cost));
      flops += cost.flops;
      unknown += !known;
    }
  const char* unit = flops >= 1e9 ? "G" : flops >= 1e6 ? "M" : "";
  assay_print(stdout, "flops      %.4g%s%s",
              flops / (*unit == 'G' ? 1e9
                       : *unit      ? 1e6
                                    : 1),
              *unit ? " " : "", unit);
  if (unknown) printf(", without %zu nodes with data-dependent shapes", unknown);
  if (open.met) printf("; open sizes count as 1: give them with --dim NAME=N, --batch or --shape");
  putchar('\n');
  return NULL;
}

static assay_status_t print_model(const assay_model_t* m) {
  const assay_graph_t* g = m->graph;
  assay_print(stdout, "model      '%s', IR %lld, made by %s %s; operator sets:", g->name,
              (long long)m->ir_version, *m->producer_name ? m->producer_name : "?",
              m->producer_version);
  for (size_t i = 0; i < m->n_opsets; i++)
    assay_print(stdout, " %s %lld", *m->opsets[i].domain ? m->opsets[i].domain : "ai.onnx",
                (long long)m->opsets[i].version);
  putchar('\n');
  for (size_t i = 0; i < g->n_inputs; i++)
    if (!g->inputs[i]->constant)
      assay_print(
          stdout, "input      '%s' %s\n", g->inputs[i]->name,
          ASSAY_VALTYPE_TEXT(g->inputs[i]->type ? g->inputs[i]->type : g->inputs[i]->declared));
  for (size_t i = 0; i < g->n_outputs; i++)
    assay_print(
        stdout, "output     '%s' %s\n", g->outputs[i]->name,
        ASSAY_VALTYPE_TEXT(g->outputs[i]->type ? g->outputs[i]->type : g->outputs[i]->declared));
  print_parameters(m);
  ASSAY_TRY(print_flops(m));
  return print_operators(m);
}

static int emit_json(json_t* j, const char* path) {
  assay_status_t st = j ? assay_cli_write_json(path, j) : assay_status_no_memory();
  json_decref(j);
  return st ? assay_cli_fail(st, ASSAY_EXIT_FAILED) : ASSAY_EXIT_OK;
}

static cli_page_args_t page_args(const args_t* a) {
  return (cli_page_args_t){.file = a->file, .report = a->report, .serve = a->serve};
}

static int inspect_model(const args_t* a) {
  cli_shapes_t shapes = {0};
  const cli_page_args_t page = page_args(a);
  assay_model_t *m = NULL, *ready = NULL;
  assay_status_t st = cli_shapes_parse(&a->shape, &shapes);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_USAGE);
  st = assay_onnx_read(a->file, &m);
  int code = ASSAY_EXIT_INPUT;
  if (st) {
    code = assay_cli_fail(st, code);
  } else {
    // What cannot be run can still be looked at: say why, and go on with what the file declares.
    st = cli_shapes_settle(m, &shapes);
    if (!st) st = assay_onnx_prepare_known(m, shapes.n, shapes.shapes, &ready);
    if (st) {
      assay_print(stderr, "assay: %s: %s\n", a->file, assay_status_message(st));
      assay_status_free(st);
    }
    const assay_model_t* shown = ready ? ready : m;
    code = ready ? ASSAY_EXIT_OK : ASSAY_EXIT_INPUT;
    if (a->json) {
      int written = emit_json(model_json(shown), a->json);
      if (written) code = written;
    } else if ((st = print_model(shown))) {
      code = assay_cli_fail(st, ASSAY_EXIT_FAILED);
    }
    if (cli_page_asked(&page) && code != ASSAY_EXIT_FAILED) {
      int written = cli_page_of_model(&page, shown);
      if (written) code = written;
    }
  }
  assay_model_release(ready);
  assay_model_release(m);
  cli_shapes_free(&shapes);
  return code;
}

// ---- data ---------------------------------------------------------------------------------------

static json_t* array_json(const char* name, const assay_tensor_t* t, bool text) {
  double min = (double)INFINITY, max = -(double)INFINITY;
  int64_t nan = 0, inf = 0, zero = 0;
  assay_error_sum_t s = ASSAY_ERROR_SUM_INIT;
  double *values = t->store == ASSAY_STORE_F64 ? assay_f64(t) : NULL, sum = 0, sum2 = 0;
  for (int64_t i = 0; i < t->size && t->store != ASSAY_STORE_STR; i++) {
    double x = values ? values[i]
               : t->store == ASSAY_STORE_C128
                   ? assay_hypot(assay_c128(t)[2 * i], assay_c128(t)[2 * i + 1])
               : t->type == ASSAY_TYPE_UINT64 ? (double)(uint64_t)assay_i64(t)[i]
                                              : (double)assay_i64(t)[i];
    nan += x != x;
    inf += isinf(x) != 0;
    zero += x == 0;
    if (!isfinite(x)) continue;
    s.finite++;
    min = fmin(min, x);
    max = fmax(max, x);
    sum += x;
    sum2 += x * x;
  }
  double n = s.finite ? (double)s.finite : 1, mean = sum / n;
  double deviation = sqrt(fmax(sum2 / n - mean * mean, 0));
  if (text) {
    assay_print(stdout, "%s: %s%s", name, assay_type_name(t->type), ASSAY_DIMS_TEXT(t));
    if (s.finite)
      printf("  min %.6g  max %.6g  mean %.6g  std %.6g  zeros %lld", min, max, mean, deviation,
             (long long)zero);
    if (nan || inf) printf("  NaN %lld  Inf %lld", (long long)nan, (long long)inf);
    putchar('\n');
    return NULL;
  }
  json_t* shape = json_array();
  for (int i = 0; i < t->rank; i++) shape = assay_json_push(shape, json_integer(t->dims[i]));
  return json_pack("{s:o, s:s, s:o, s:o, s:o, s:o, s:o, s:I, s:I, s:I}", "name",
                   assay_json_text(name), "elem", assay_type_name(t->type), "shape", shape, "min",
                   s.finite ? assay_json_number(min) : json_null(), "max",
                   s.finite ? assay_json_number(max) : json_null(), "mean",
                   s.finite ? assay_json_number(mean) : json_null(), "std",
                   s.finite ? assay_json_number(deviation) : json_null(), "zeros", (json_int_t)zero,
                   "nan", (json_int_t)nan, "inf", (json_int_t)inf);
}

static int inspect_data(const args_t* a) {
  assay_set_t set = {0};
  json_t* list = json_array();
  const assay_tensor_request_t request = {.path = a->file, .outputs = true};
  assay_saved_t saved = {0};
  assay_status_t st = assay_tensor_file_read(&request, &saved);
  if (!st) st = assay_saved_join(&saved, &set);
  // Of safetensors; with its line break.
  json_t* about = json_null();
  if (saved.about.len && !a->json)
    assay_print(stdout, "metadata " ASSAY_LINES, assay_str_get(&saved.about));
  if (saved.about.len && a->json) about = assay_json_text(assay_str_get(&saved.about));
  assay_saved_deinit(&saved);
  for (size_t i = 0; !st && i < set.n; i++) {
    assay_tensor_t* wide = NULL;
    st = assay_tensor_widen(set.tensors[i], &wide);
    if (st) break;
    json_t* j = array_json(set.names[i], wide, !a->json);
    if (a->json) list = assay_json_push(list, j);
    assay_tensor_release(wide);
  }
  assay_set_deinit(&set);
  if (!st && a->json)
    return emit_json(json_pack("{s:s, s:o, s:o}", "schema", "assay.inspect.data/1", "metadata",
                               about, "arrays", list),
                     a->json);
  json_decref(list);
  json_decref(about);
  return st ? assay_cli_fail(st, ASSAY_EXIT_INPUT) : ASSAY_EXIT_OK;
}

// ---- plan ---------------------------------------------------------------------------------------

static json_t* origins_json(const assay_plan_t* plan, const assay_layer_t* l) {
  json_t* list = json_array();
  for (size_t k = 0; k < l->n_nodes; k++) {
    assay_origins_t o = assay_plan_origins(plan, &l->nodes[k]);
    for (size_t i = 0; i < o.n; i++)
      list = assay_json_push(list, assay_json_text(o.nodes[i]->label));
  }
  return list;
}

// "Conv+Relu".
static void layer_op(const assay_layer_t* l, assay_str_t* out) {
  for (size_t k = 0; k < l->n_nodes; k++)
    assay_str_printf(out, "%s%s", k ? "+" : "", l->nodes[k]->op_type);
}

static json_t* layer_json(const assay_plan_t* plan, const assay_layer_t* l) {
  json_t* hidden = json_array();
  for (size_t k = 0; k + 1 < l->n_nodes; k++)
    for (size_t i = 0; i < l->nodes[k]->n_outputs; i++)
      if (l->nodes[k]->outputs[i])
        hidden = assay_json_push(hidden, assay_json_text(l->nodes[k]->outputs[i]->name));
  assay_str_t op = {0};
  layer_op(l, &op);
  json_t* j = json_pack("{s:o, s:o, s:o, s:o, s:s, s:s, s:o}", "name", assay_json_text(l->name),
                        "op", assay_json_str(&op), "nodes", origins_json(plan, l), "hidden", hidden,
                        "format", assay_format_name(l->format), "accumulator",
                        assay_format_name(l->accumulator), "reason", assay_json_text(l->reason));
  assay_str_deinit(&op);
  return j;
}

static json_t* log_json(const assay_rewrite_t* r) {
  json_t* list = json_array();
  for (size_t i = 0; r && i < r->n_log; i++) {
    const assay_pass_entry_t* e = &r->log[i];
    json_t* nodes = json_array();
    for (size_t k = 0; k < e->n_nodes; k++)
      nodes = assay_json_push(nodes, assay_json_text(e->nodes[k]->label));
    list = assay_json_push(list, json_pack("{s:s, s:s, s:o, s:o}", "pass", e->pass, "action",
                                           assay_pass_action_name(e->action), "nodes", nodes, "why",
                                           assay_json_text(e->why)));
  }
  return list;
}

// One line a layer, and one for each node of the model in it where there are several.
static void print_layer(const assay_plan_t* plan, const assay_layer_t* l) {
  assay_str_t op = {0};
  layer_op(l, &op);
  assay_print(stdout, "  %-8s %-20s %s   (%s)\n", assay_format_name(l->format), assay_str_get(&op),
              l->name, l->reason);
  assay_str_deinit(&op);
  for (size_t k = 0; k < l->n_nodes; k++) {
    assay_origins_t o = assay_plan_origins(plan, &l->nodes[k]);
    for (size_t i = 0; (l->n_nodes > 1 || o.n > 1) && i < o.n; i++)
      assay_print(stdout, "           %-20s %s\n", o.nodes[i]->op_type, o.nodes[i]->label);
  }
}

// What each pass did, counted.
static void print_passes(const assay_rewrite_t* r) {
  for (size_t p = 0; r && p < assay_pass_count(); p++) {
    size_t n = 0, nodes = 0;
    for (size_t i = 0; i < r->n_log; i++) {
      if (strcmp(r->log[i].pass, assay_pass_at(p)->name) != 0) continue;
      n++;
      nodes += r->log[i].n_nodes;
    }
    if (n)
      assay_print(stdout, "pass       %-20s %zu %s, %zu %s\n", assay_pass_at(p)->name, n,
                  n == 1 ? "time" : "times", nodes, nodes == 1 ? "node" : "nodes");
  }
}

// A plan can be looked at with operators that are unknown, too.
static int inspect_plan(const args_t* a) {
  cli_shapes_t shapes = {0};
  assay_model_t* m = NULL;
  assay_plan_t* plan = NULL;
  assay_precision_t p = {.format = ASSAY_FORMAT_FP32};
  assay_plan_options_t plan_options = cli_plan_options(a->fused, &a->no_pass);
  int code = ASSAY_EXIT_OK;
  if (assay_engine_is_plan_file(a->file)) return cli_inspect_engine(a->file, a->explain, a->json);
  if (a->explain)
    return assay_cli_usage("inspect", "--explain is for plan files; build one with 'assay build'");
  if (a->precision) p.format = assay_format_parse(a->precision);
  if (!assay_format_info(p.format)->is_float)
    return assay_cli_usage("inspect", "unknown precision '%s'", a->precision);
  assay_status_t st = cli_shapes_parse(&a->shape, &shapes);
  if (!st && a->layer_precision) st = assay_precision_parse(&p, a->layer_precision);
  if (st) code = ASSAY_EXIT_USAGE;
  if (!st && (st = cli_shapes_load(a->file, true, &shapes, &m))) code = ASSAY_EXIT_INPUT;
  if (!st && (st = assay_plan_create(m, &p, &plan_options, 0, &plan))) code = ASSAY_EXIT_USAGE;
  if (st) {
    code = assay_cli_fail(st, code);
  } else {
    const assay_layers_t* layers = assay_plan_layers(plan);
    json_t* list = json_array();
    if (!a->json) printf("plan       %zu layers on emu\n", layers->n_layers);
    if (!a->json && assay_onnx_unknown(m))
      puts("unknown operators: it cannot be run without --ops");
    if (!a->json) print_passes(assay_plan_rewrite(plan));
    for (size_t i = 0; i < layers->n_layers; i++) {
      if (a->json)
        list = assay_json_push(list, layer_json(plan, &layers->layers[i]));
      else
        print_layer(plan, &layers->layers[i]);
    }
    if (a->json)
      code = emit_json(json_pack("{s:s, s:b, s:o, s:o}", "schema", "assay.inspect.plan/1", "fused",
                                 plan_options.fused, "layers", list, "passes",
                                 log_json(assay_plan_rewrite(plan))),
                       a->json);
    else
      json_decref(list);
  }
  assay_plan_destroy(plan);
  assay_model_release(m);
  assay_precision_deinit(&p);
  cli_shapes_free(&shapes);
  return code;
}

static int run(void* p) {
  args_t* a = p;
  const cli_page_args_t page = page_args(a);
  const bool is_plan = strcmp(a->what, "plan") == 0;
  if (!cli_page_check(&page)) return ASSAY_EXIT_USAGE;
  if (cli_page_asked(&page) && strcmp(a->what, "model") != 0 &&
      !(is_plan && assay_engine_is_plan_file(a->file)))
    return assay_cli_usage(
        "inspect", "--report and --serve show models and plan files; build one with 'assay build'");
  if (strcmp(a->what, "model") == 0) return inspect_model(a);
  if (strcmp(a->what, "data") == 0) return inspect_data(a);
  if (is_plan) {
    const int code = inspect_plan(a);
    return code || !cli_page_asked(&page) ? code : cli_page_of_plan(&page);
  }
  return assay_cli_usage("inspect", "'%s' cannot be inspected: say model, data or plan", a->what);
}

static const opt_t options[] = {
    {"WHAT", 0, OPT_STRING, offsetof(args_t, what), NULL, "model, data (a file of arrays) or plan",
     true},
    {"FILE", 0, OPT_STRING, offsetof(args_t, file), NULL, "the file to look into", true},
    {"--json", 0, OPT_OUT_FILE, offsetof(args_t, json), "FILE", "as JSON; - is stdout", false},
    CLI_SHAPE_OPTIONS(shape),
    {"--precision", 0, OPT_STRING, offsetof(args_t, precision), "FORMAT", "plan: of float32 values",
     false},
    CLI_RULES_OPTIONS(layer_precision, "plan: "),
    {"--explain", 0, OPT_STRING, offsetof(args_t, explain), "NODE",
     "plan file: which tactics competed for its layer, and\nhow long each took", false},
    {"--report", 0, OPT_OUT_FILE, offsetof(args_t, report), "FILE",
     "model, plan file: one HTML page with the graph to look at;\nneeds no network", false},
    {"--serve", 0, OPT_STRING, offsetof(args_t, serve), "PORT",
     "the same page at http://127.0.0.1:PORT, until Ctrl-C;\n0: any port that is free", false},
    CLI_OPS_OPTION,
    CLI_HARD_LINKS_OPTION(allow_hard_links),
    CLI_FUSED_OPTIONS,
    CLI_TIMEOUT_OPTION,
    {0}};

const verb_t assay_verb_inspect = {
    .name = "inspect",
    .summary = "show what is in a model, a file of arrays, or a plan",
    .usage = "model|data|plan FILE [options]",
    .examples =
        "  assay inspect model model.onnx\n"
        "  assay inspect model model.onnx --json -\n"
        "  assay inspect model model.onnx --report model.html\n"
        "  assay inspect data inputs.npz\n"
        "  assay inspect plan model.onnx --precision fp16 --fused\n"
        "  assay inspect plan model.plan --explain conv1\n",
    .options = options,
    .args_bytes = sizeof(args_t),
    .run = run,
};
