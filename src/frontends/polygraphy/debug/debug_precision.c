// polygraphy debug precision: how many layers, from the model's begin or its end, have to be in a
// higher precision so that a check passes.
#include <string.h>

#include "base/shell.h"
#include "base/shown.h"
#include "formats/format.h"
#include "frontends/polygraphy/debug/debug_builder.h"
#include "frontends/polygraphy/debug/debug_loop.h"
#include "frontends/polygraphy/debug/debug_next.h"
#include "frontends/polygraphy/debug/debug_search.h"
#include "report/report.h"

typedef struct work {
  pg_builder_t builder;
  pg_debug_t debug;
  pg_search_t search;
  const assay_node_t** nodes;  // that can be marked: of the first k, or (reverse) the last k first
  size_t n_nodes, cap_nodes;
  assay_format_t format;  // the higher one
  bool reverse;
} work_t;

// ---- layers that can be marked ------------------------------------------------------------------

static bool is_float(const assay_value_t* v) {
  const assay_valtype_t* t = v->type ? v->type : v->declared;
  return !v->constant && (!t || t->kind != ASSAY_KIND_TENSOR || assay_type_is_float(t->elem));
}

// No constants, no sizes, nothing that computes on integers.
static bool makes_floats(const assay_node_t* n) {
  for (size_t i = 0; i < n->n_outputs; i++)
    if (n->outputs[i] && is_float(n->outputs[i])) return true;
  return false;
}

static assay_status_t collect(work_t* w, const assay_graph_t* g);

static assay_status_t collect_bodies(work_t* w, const assay_node_t* n) {
  for (size_t a = 0; a < n->n_attrs; a++) {
    const assay_attr_t* attr = &n->attrs[a];
    if (attr->type == ASSAY_ATTR_GRAPH) ASSAY_TRY(collect(w, attr->u.g));
    for (size_t k = 0; attr->type == ASSAY_ATTR_GRAPHS && k < attr->n; k++)
      ASSAY_TRY(collect(w, attr->u.graphs[k]));
  }
  return NULL;
}

static assay_status_t collect(work_t* w, const assay_graph_t* g) {
  for (size_t i = 0; i < g->n_nodes; i++) {
    ASSAY_TRY(collect_bodies(w, g->nodes[i]));
    if (!makes_floats(g->nodes[i])) continue;
    ASSAY_TRY(assay_grow(&w->nodes, &w->cap_nodes, w->n_nodes + 1, sizeof *w->nodes));
    w->nodes[w->n_nodes++] = g->nodes[i];
  }
  return NULL;
}

static void turn_round(work_t* w) {
  for (size_t i = 0; i < w->n_nodes / 2; i++) {
    const assay_node_t* n = w->nodes[i];
    w->nodes[i] = w->nodes[w->n_nodes - 1 - i];
    w->nodes[w->n_nodes - 1 - i] = n;
  }
}

// ---- the search ---------------------------------------------------------------------------------

static assay_status_t make(void* user, pg_iteration_t* i) {
  work_t* w = user;
  (void)i;
  pg_log(PG_INFO, "Marking the %s %zu of %zu layer(s) to run in %s", w->reverse ? "last" : "first",
         w->search.at, w->n_nodes, assay_format_name(w->format));
  return pg_builder_build(&w->builder, w->nodes, w->search.at, w->format, w->debug.artifact);
}

static assay_status_t advance(void* user, const pg_iteration_t* i, bool* out_stop) {
  work_t* w = user;
  pg_search_record(&w->search, i->success);
  *out_stop = w->search.done;
  return NULL;
}

// ---- telling ------------------------------------------------------------------------------------

static assay_status_t report_layers(const work_t* w) {
  const bool half = w->format == ASSAY_FORMAT_FP16;
  assay_str_t own = {0}, trtexec = {0}, quoted = {0};
  for (size_t i = 0; i < w->search.best; i++) {
    assay_str_t word = {0};
    assay_str_printf_raw(&word, "%s:%s", w->nodes[i]->label, half ? "float16" : "float32");
    assay_str_append(&own, " ");
    assay_shell_word_quoted(&own, assay_str_get(&word));
    own.failed |= word.failed;
    assay_str_deinit(&word);
    assay_report_trtexec_layer(w->nodes[i], half ? "fp16" : "fp32", &trtexec);
  }
  assay_shell_word_quoted(&quoted, assay_str_get(&trtexec));
  assay_status_t st = assay_str_status(&own);
  st = assay_status_join(st, assay_str_status(&trtexec));
  st = assay_status_join(st, assay_str_status(&quoted));
  if (!st)
    pg_log(PG_FINISH,
           "For polygraphy: --precision-constraints obey --layer-precisions%s\n"
           "For trtexec: --precisionConstraints=obey --layerPrecisions=%s",
           assay_str_get(&own), assay_str_get(&quoted));
  assay_str_deinit(&own);
  assay_str_deinit(&trtexec);
  assay_str_deinit(&quoted);
  return st;
}

// A prefix has all layers in front of the last one that matters: most of them need nothing.
static assay_status_t report_next(const work_t* w) {
  assay_str_t next = {0};
  assay_status_t st = pg_put_fewest(w->builder.job, &next);
  if (!st && next.len)
    pg_log(PG_FINISH, "The fewest layers, wherever they are | Next: %s", assay_str_get(&next));
  assay_str_deinit(&next);
  return st;
}

static assay_status_t report(const work_t* w) {
  if (!w->search.found) {
    pg_log(PG_FINISH, "Could not find a configuration that satisfied accuracy requirements.");
    return report_next(w);
  }
  pg_log(PG_FINISH,
         "To achieve acceptable accuracy, try running the %s %zu layer(s) in higher precision",
         w->reverse ? "last" : "first", w->search.best);
  if (w->search.best) {
    ASSAY_TRY(report_layers(w));
    return report_next(w);
  }
  pg_log(PG_FINISH, "No layer needs it: the check passes in the lower precision");
  return NULL;
}

// ---- the subcommand -----------------------------------------------------------------------------

static assay_status_t check_flags(const pg_args_t* a) {
  const bool lower = pg_given(a, PG_FLAG_fp16) || pg_given(a, PG_FLAG_int8) ||
                     pg_given(a, PG_FLAG_tf32) || pg_given(a, PG_FLAG_bf16) ||
                     pg_given(a, PG_FLAG_fp8);
  if (!lower)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "there is no lower precision to run the other layers in: give at least one "
                       "of --fp16, --bf16, --int8, --tf32, --fp8");
  if (pg_given(a, PG_FLAG_precision_constraints) &&
      !pg_is(a, PG_FLAG_precision_constraints, "obey"))
    pg_log(PG_WARNING,
           "--precision-constraints %s has no effect: the layers that are tried have to obey",
           pg_text(a, PG_FLAG_precision_constraints));
  if (pg_is(a, PG_FLAG_precision, "float16") && !pg_given(a, PG_FLAG_fp16))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "-p float16 needs --fp16, which allows it");
  if (pg_is(a, PG_FLAG_precision, "float16") && !pg_given(a, PG_FLAG_int8) &&
      !pg_given(a, PG_FLAG_fp8))
    pg_log(
        PG_WARNING,
        "-p float16: no precision below it is allowed, so nothing changes; give --int8 or --fp8");
  return NULL;
}

static assay_status_t search(work_t* w) {
  const pg_args_t* a = w->builder.job->args;
  ASSAY_TRY(collect(w, w->builder.model->graph));
  if (!w->n_nodes)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                       "the model has no layer whose precision can be chosen: none makes floats");
  if (w->reverse) turn_round(w);
  w->search = pg_search_begin(pg_is(a, PG_FLAG_mode, "linear") ? PG_SEARCH_UP : PG_SEARCH_BISECT,
                              w->n_nodes, false);
  const pg_loop_t loop = {
      .about = pg_search_max_tries(&w->search), .make = make, .advance = advance, .user = w};
  ASSAY_TRY(pg_debug_loop(&w->debug, &loop));
  return report(w);
}

assay_status_t pg_run_debug_precision(pg_job_t* j) {
  work_t w = {.builder = {.keeps_times = true},
              .reverse = pg_is(j->args, PG_FLAG_dir, "reverse"),
              .format = pg_is(j->args, PG_FLAG_precision, "float16") ? ASSAY_FORMAT_FP16
                                                                     : ASSAY_FORMAT_FP32};
  ASSAY_TRY(check_flags(j->args));
  ASSAY_TRY(pg_debug_open(j, "polygraphy_debug.engine", &w.debug));
  assay_status_t st = pg_builder_open(j, &w.builder);
  if (!st) st = search(&w);
  j->failed = !w.search.found;
  assay_free(w.nodes);
  pg_builder_close(&w.builder);
  pg_debug_close(&w.debug);
  return st;
}
