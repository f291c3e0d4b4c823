// assay inspect plan, of a plan file: its ends, profiles and layers, and what runs them.
#include "cli/verbs/inspect/inspect_engine.h"

#include <string.h>

#include "base/memory.h"
#include "base/shell.h"
#include "base/shown.h"
#include "cli/verbs/engine_source.h"
#include "cli/verbs/inspect/inspect_values.h"
#include "formats/format.h"

static bool matches(const assay_layer_t* l, const char* pattern) {
  if (assay_glob_match(pattern, l->name)) return true;
  for (size_t k = 0; k < l->n_nodes; k++) {
    if (assay_glob_match(pattern, l->nodes[k]->label)) return true;
    for (size_t i = 0; i < l->nodes[k]->n_outputs; i++)
      if (l->nodes[k]->outputs[i] && assay_glob_match(pattern, l->nodes[k]->outputs[i]->name))
        return true;
  }
  return false;
}

static void print_line(const assay_executor_t* e, const assay_layer_t* l, size_t i) {
  const assay_format_t executed = assay_executor_executed(e, i);
  const char* tactic = assay_executor_tactic(e, i);
  assay_print(stdout, "%-6s %-6s %-16s %-20s %s", assay_format_name(l->format),
              executed ? assay_format_name(executed) : "-", tactic, l->nodes[0]->op_type, l->name);
  if (assay_tactic_is_emulated(tactic))
    printf("   (no kernel takes it)");
  else if (executed && executed != l->format)
    assay_print(stdout, "   (stored in %s; this CPU's kernel computes in %s)",
                assay_format_name(l->format), assay_format_name(executed));
  putchar('\n');
}

static int explain_layers(const assay_executor_t* e, const assay_layers_t* layers,
                          const char* pattern) {
  size_t n = 0;
  for (size_t i = 0; i < layers->n_layers; i++) {
    const assay_layer_t* l = &layers->layers[i];
    assay_str_t text = {0};
    if (!matches(l, pattern)) continue;
    n++;
    assay_print(stdout, "%s   %s: %s\n", l->name, assay_format_name(l->format), l->reason);
    for (size_t k = 0; l->n_nodes > 1 && k < l->n_nodes; k++)
      assay_print(stdout, "    %-20s %s\n", l->nodes[k]->op_type, l->nodes[k]->label);
    assay_executor_explain(e, i, &text);
    fputs(assay_str_get(&text), stdout);
    assay_str_deinit(&text);
  }
  if (n) return ASSAY_EXIT_OK;
  return assay_cli_usage("inspect", "no layer of the plan has a node or an output '%s'", pattern);
}

// ---- the whole ----------------------------------------------------------------------------------

static void print_ends(const assay_engine_t* engine) {
  const assay_graph_t* g = assay_plan_layers(assay_engine_plan(engine))->model->graph;
  const assay_profile_t* profiles;
  const size_t n = assay_engine_profiles(engine, &profiles);
  cli_values_print("input", g->inputs, g->n_inputs);
  cli_values_print("output", g->outputs, g->n_outputs);
  for (size_t i = 0; i < n; i++) {
    assay_str_t range = {0};
    assay_profile_print(&profiles[i], &range);
    assay_print(stdout, "profile %-2d '%s'%s\n", profiles[i].profile, profiles[i].input,
                assay_str_get(&range));
    assay_str_deinit(&range);
  }
}

static json_t* numbers_json(const int64_t* x, int n) {
  json_t* list = json_array();
  for (int i = 0; i < n; i++) list = assay_json_push(list, json_integer(x[i]));
  return list;
}

static json_t* profiles_json(const assay_engine_t* engine) {
  const assay_profile_t* p;
  const size_t n = assay_engine_profiles(engine, &p);
  json_t* list = json_array();
  for (size_t i = 0; i < n; i++)
    list = assay_json_push(
        list, json_pack("{s:o, s:i, s:b, s:o, s:o, s:o}", "input", assay_json_text(p[i].input),
                        "profile", p[i].profile, "values", p[i].values, "min",
                        numbers_json(p[i].min, p[i].rank), "opt", numbers_json(p[i].opt, p[i].rank),
                        "max", numbers_json(p[i].max, p[i].rank)));
  return list;
}

static json_t* nodes_json(const assay_layer_t* l) {
  json_t* list = json_array();
  for (size_t k = 0; k < l->n_nodes; k++)
    list =
        assay_json_push(list, json_pack("{s:o, s:o}", "name", assay_json_text(l->nodes[k]->label),
                                        "op", assay_json_text(l->nodes[k]->op_type)));
  return list;
}

// e NULL: it cannot run.
static json_t* layer_json(const assay_executor_t* e, const assay_layer_t* l, size_t i) {
  const assay_format_t executed = e ? assay_executor_executed(e, i) : ASSAY_FORMAT_NONE;
  json_t* j =
      json_pack("{s:o, s:s, s:o, s:s?, s:s?, s:o}", "name", assay_json_text(l->name), "format",
                assay_format_name(l->format), "reason", assay_json_text(l->reason), "ran",
                executed ? assay_format_name(executed) : NULL, "tactic",
                e ? assay_executor_tactic(e, i) : NULL, "nodes", nodes_json(l));
  if (!e) return j;
  assay_str_t text = {0};
  assay_executor_explain(e, i, &text);
  j = assay_json_put(j, "choice", assay_json_str(&text));
  assay_str_deinit(&text);
  return j;
}

// explain NULL: all layers.
static int write_json(const assay_engine_t* engine, const assay_executor_t* e, const char* explain,
                      const char* path) {
  const assay_layers_t* layers = assay_plan_layers(assay_engine_plan(engine));
  const assay_graph_t* g = layers->model->graph;
  uint64_t missing;
  json_t* list = json_array();
  for (size_t i = 0; i < layers->n_layers; i++)
    if (!explain || matches(&layers->layers[i], explain))
      list = assay_json_push(list, layer_json(e, &layers->layers[i], i));
  json_t* j = json_pack(
      "{s:s, s:s, s:s, s:I, s:o, s:o, s:o, s:o}", "schema", "assay.inspect.plan_file/1", "target",
      assay_engine_backend(engine)->name, "fp32", assay_fp32_name(layers->fp32), "missing_weights",
      (json_int_t)assay_engine_missing_weights(engine, &missing), "inputs",
      cli_values_json(g->inputs, g->n_inputs), "outputs", cli_values_json(g->outputs, g->n_outputs),
      "profiles", profiles_json(engine), "layers", list);
  if (e)
    j = assay_json_put(j, "run_bytes", json_integer((json_int_t)assay_executor_planned_bytes(e)));
  assay_status_t st = j ? assay_cli_write_json(path, j) : assay_status_no_memory();
  json_decref(j);
  return st ? assay_cli_fail(st, ASSAY_EXIT_FAILED) : ASSAY_EXIT_OK;
}

// A plan that cannot run: what is known of it without.
static int print_stripped(const assay_engine_t* engine, const char* file, const char* explain) {
  const assay_layers_t* layers = assay_plan_layers(assay_engine_plan(engine));
  uint64_t bytes;
  const size_t n = assay_engine_missing_weights(engine, &bytes);
  if (explain) return assay_cli_fail(assay_engine_check_whole(engine), ASSAY_EXIT_INPUT);
  assay_print(stdout, "plan       %zu layers on %s; stripped: %zu weights are missing (%s)\n",
              layers->n_layers, assay_engine_backend(engine)->name, n, ASSAY_BYTES_TEXT(bytes));
  assay_str_t word = {0};
  assay_shell_word(&word, file);
  assay_print(stdout, "           assay refit %s --weights MODEL.onnx puts them in\n",
              assay_str_get(&word));
  assay_str_deinit(&word);
  assay_print(stdout, "fp32       %s\n", assay_fp32_name(layers->fp32));
  assay_print(stdout, "%-6s %-20s %s\n", "asked", "operator", "layer");
  for (size_t i = 0; i < layers->n_layers; i++) {
    const assay_layer_t* l = &layers->layers[i];
    assay_print(stdout, "%-6s %-20s %s\n", assay_format_name(l->format), l->nodes[0]->op_type,
                l->name);
  }
  return ASSAY_EXIT_OK;
}

int cli_inspect_engine(const char* file, const char* explain, const char* json) {
  assay_engine_t* engine = NULL;
  assay_executor_t* e = NULL;
  int code = ASSAY_EXIT_OK;
  assay_status_t st = assay_engine_load(file, &engine);
  if (st) return assay_cli_fail(st, ASSAY_EXIT_INPUT);
  if (assay_engine_missing_weights(engine, NULL)) {
    code = json && !explain ? write_json(engine, NULL, NULL, json)
                            : print_stripped(engine, file, explain);
    assay_engine_release(engine);
    return code;
  }
  const assay_layers_t* layers = assay_plan_layers(assay_engine_plan(engine));
  st = cli_engine_try(engine, 0, &e);
  if (st) {
    code = assay_cli_fail(st, ASSAY_EXIT_FAILED);
  } else if (json) {
    code = write_json(engine, e, explain, json);
  } else if (explain) {
    code = explain_layers(e, layers, explain);
  } else {
    assay_print(stdout, "plan       %zu layers on %s; activation memory: %s\n", layers->n_layers,
                assay_engine_backend(engine)->name,
                ASSAY_BYTES_TEXT(assay_executor_planned_bytes(e)));
    assay_print(stdout, "fp32       %s\n", assay_fp32_name(layers->fp32));
    print_ends(engine);
    assay_print(stdout, "%-6s %-6s %-16s %-20s %s\n", "asked", "ran", "tactic", "operator",
                "layer");
    for (size_t i = 0; i < layers->n_layers; i++) print_line(e, &layers->layers[i], i);
  }
  assay_executor_destroy(e);
  assay_engine_release(engine);
  return code;
}
