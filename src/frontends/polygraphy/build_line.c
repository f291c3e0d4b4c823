// The flags of a build in trtexec's words.
#include <ctype.h>
#include <string.h>
#include <unistd.h>

#include "base/shown.h"
#include "frontends/polygraphy/build.h"
#include "frontends/polygraphy/ends.h"
#include "frontends/polygraphy/model.h"
#include "frontends/trtexec/job.h"
#include "frontends/trtexec/specs.h"
#include "report/report.h"

// ---- flags that mean the same -------------------------------------------------------------------

typedef enum way {
  SAME,   // a switch, or its value as it is
  NAMED,  // known to messages; put by a function of its own
} way_t;

static const struct {
  pg_flag_id_t flag;
  const char* trt;
  way_t way;
} rows[] = {
    {PG_FLAG_fp16, "--fp16", SAME},
    {PG_FLAG_bf16, "--bf16", SAME},
    {PG_FLAG_int8, "--int8", SAME},
    {PG_FLAG_fp8, "--fp8", SAME},
    {PG_FLAG_strongly_typed, "--stronglyTyped", SAME},
    {PG_FLAG_refittable, "--refit", SAME},
    {PG_FLAG_strip_plan, "--stripWeights", SAME},
    {PG_FLAG_error_on_timing_cache_miss, "--errorOnTimingCacheMiss", SAME},
    {PG_FLAG_optimization_profile, "--useProfile", SAME},
    {PG_FLAG_direct_io, "--directIO", SAME},
    {PG_FLAG_builder_optimization_level, "--builderOptimizationLevel", SAME},
    {PG_FLAG_precision_constraints, "--precisionConstraints", NAMED},
    {PG_FLAG_profiling_verbosity, "--profilingVerbosity", SAME},
    {PG_FLAG_load_timing_cache, "--timingCacheFile", NAMED},
    {PG_FLAG_tactic_sources, "--tacticSources", NAMED},
    {PG_FLAG_pool_limit, "--memPoolSize", NAMED},
    {PG_FLAG_layer_precisions, "--layerPrecisions", NAMED},
    {PG_FLAG_calibration_cache, "--calib", NAMED},
    {PG_FLAG_trt_min_shapes, "--minShapes", NAMED},
    {PG_FLAG_trt_opt_shapes, "--optShapes", NAMED},
    {PG_FLAG_trt_max_shapes, "--maxShapes", NAMED},
    {PG_FLAG_input_shapes, "--shapes", NAMED},
    {PG_FLAG_tensor_dtypes, "--inputIOFormats", NAMED},
    {PG_FLAG_tensor_dtypes, "--outputIOFormats", NAMED},
};
enum { N_ROWS = sizeof rows / sizeof *rows };

void pg_rename_flags(const char* text, assay_str_t* out) {
  for (const char* at = text; *at;) {
    size_t n = 0;
    int found = N_ROWS;
    if (strncmp(at, "--", 2) == 0)
      for (n = 2; isalnum((unsigned char)at[n]); n++) continue;
    for (int i = 0; n > 2 && i < N_ROWS && found == N_ROWS; i++)
      if (strlen(rows[i].trt) == n && strncmp(rows[i].trt, at, n) == 0) found = i;
    if (found < N_ROWS) {
      const char* names = pg_flags[rows[found].flag].names;
      assay_str_append_n(out, names, strcspn(names, " "));
      at += n + (at[n] == '=');
      if (at[-1] == '=') assay_str_append(out, " ");
    } else {
      assay_str_append_n(out, at++, 1);
    }
  }
}

// ---- the line -----------------------------------------------------------------------------------

typedef struct line {
  pg_job_t* j;
  const pg_build_t* build;
  const assay_model_t* model;
  const char** words;
  size_t n, cap;
} line_t;

static assay_status_t add(line_t* l, const char* word) {
  if (l->n == l->cap) {
    const char** grown = NULL;
    ASSAY_TRY(assay_arena_new(l->j->arena, 2 * l->cap + 16, sizeof *grown, &grown));
    if (l->n) memcpy(grown, l->words, l->n * sizeof *grown);
    l->words = grown;
    l->cap = 2 * l->cap + 16;
  }
  l->words[l->n++] = word;
  return NULL;
}

// "name=text"; the text is freed.
static assay_status_t add_text(line_t* l, const char* name, assay_str_t* text) {
  const char* word = NULL;
  assay_status_t st = assay_str_status(text);
  if (!st) st = assay_arena_printf(l->j->arena, &word, "%s=%s", name, assay_str_get(text));
  if (!st) st = add(l, word);
  assay_str_deinit(text);
  return st;
}

// A name as an element of a list has it.
static void put_name(assay_str_t* out, const char* name) {
  if (out->len) assay_str_append(out, ",");
  assay_report_trtexec_name(name, out);
}

static assay_status_t add_same(line_t* l) {
  const pg_args_t* a = l->j->args;
  for (int i = 0; i < N_ROWS; i++) {
    const pg_flag_t* f = &pg_flags[rows[i].flag];
    const char* word = rows[i].trt;
    if (rows[i].way != SAME || !pg_given(a, rows[i].flag)) continue;
    if (f->kind != PG_SWITCH)
      ASSAY_TRY(assay_arena_printf(l->j->arena, &word, "%s=%s", word, pg_text(a, rows[i].flag)));
    ASSAY_TRY(add(l, word));
  }
  return NULL;
}

// ---- shapes -------------------------------------------------------------------------------------

static void put_dims(assay_str_t* out, int rank, const int64_t* dims) {
  for (int d = 0; d < rank; d++)
    assay_str_printf_raw(out, d ? "x%lld" : "%lld", (long long)dims[d]);
  if (!rank) assay_str_append(out, "scalar");
}

static bool is_open(const assay_value_t* v) {
  const assay_valtype_t* t = v->type ? v->type : v->declared;
  int64_t n;
  if (v->constant || !t || t->kind != ASSAY_KIND_TENSOR) return false;
  if (!t->has_shape) return true;
  for (int d = 0; d < t->rank; d++)
    if (!assay_dim_value(t->dims ? t->dims[d] : NULL, &n)) return true;
  return false;
}

// Whether profiles say something of an input; *out_values: the values of a shape that it holds.
static assay_status_t is_ranged(const line_t* l, const assay_value_t* v, bool* out_values,
                                bool* out) {
  int64_t n = 0;
  if (!v->constant) ASSAY_TRY(trt_shape_input(l->model, v, &n));
  *out_values = n > 0;
  *out = n > 0 || is_open(v);
  return NULL;
}

// A list of shapes of a profile, each for the inputs that its name fits.
static assay_status_t add_shapes(line_t* l, pg_flag_id_t flag, const char* trt,
                                 const pg_words_t* words) {
  const assay_graph_t* g = l->model->graph;
  const char* name = pg_flags[flag].names;
  assay_str_t text = {0};
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < words->n; i++) {
    pg_pair_t pair;
    int64_t dims[ASSAY_MAX_RANK];
    int rank = 0;
    bool any = false;
    st = pg_pair_split(l->j->arena, words->items[i], &pair);
    if (!st) st = pg_shape(l->j->arena, name, pair.value, &rank, dims, NULL);
    for (size_t k = 0; !st && k < g->n_inputs; k++) {
      const assay_value_t* v = g->inputs[k];
      bool values, ranged;
      if (*pair.name && !pg_fits(pair.name, v->name)) continue;
      st = is_ranged(l, v, &values, &ranged);
      if (st || !ranged) continue;
      put_name(&text, v->name);
      assay_str_append(&text, ":");
      put_dims(&text, rank, dims);
      any = true;
    }
    if (!st && !any)
      pg_log(PG_WARNING, "%s: '%s' is not an input with open dimensions", name, words->items[i]);
  }
  if (st || !text.len) return assay_str_deinit(&text), st;
  return add_text(l, trt, &text);
}

static assay_status_t add_profiles(line_t* l, size_t n) {
  static const struct {
    pg_flag_id_t flag;
    const char* trt;
  } lists[] = {{PG_FLAG_trt_min_shapes, "--minShapes"},
               {PG_FLAG_trt_opt_shapes, "--optShapes"},
               {PG_FLAG_trt_max_shapes, "--maxShapes"}};
  for (size_t i = 0; i < n; i++) {
    const char* word = NULL;
    ASSAY_TRY(assay_arena_printf(l->j->arena, &word, "--profile=%zu", i));
    if (n > 1) ASSAY_TRY(add(l, word));
    for (int k = 0; k < 3; k++) {
      const pg_value_t* v = &l->j->args->at[lists[k].flag];
      if (i < v->n_lists) ASSAY_TRY(add_shapes(l, lists[k].flag, lists[k].trt, &v->lists[i]));
    }
  }
  return NULL;
}

// The smallest, the first and the largest shapes of an input over the iterations; values: what it
// holds is a shape, and meant.
static bool shapes_of(const assay_saved_t* runs, const char* name, bool values, int* rank,
                      int64_t (*dims)[ASSAY_MAX_RANK]) {
  bool any = false;
  for (size_t i = 0; i < runs->n; i++) {
    const assay_tensor_t* t = assay_set_find(&runs->runs[i], name);
    if (!t || t->kind != ASSAY_KIND_TENSOR) continue;
    if (values && (t->store != ASSAY_STORE_I64 || t->size > ASSAY_MAX_RANK)) continue;
    const int n = values ? (int)t->size : t->rank;
    const int64_t* sizes = values ? assay_i64(t) : t->dims;
    if (any && n != *rank) continue;
    for (int d = 0; d < n; d++) {
      if (!any || sizes[d] < dims[0][d]) dims[0][d] = sizes[d];
      if (!any) dims[1][d] = sizes[d];
      if (!any || sizes[d] > dims[2][d]) dims[2][d] = sizes[d];
    }
    *rank = n;
    any = true;
  }
  return any;
}

// The shapes of the run are the profile's.
static assay_status_t add_run_shapes(line_t* l) {
  static const char* const names[] = {"--minShapes", "--optShapes", "--maxShapes"};
  const assay_graph_t* g = l->model->graph;
  assay_str_t texts[3] = {{0}};
  assay_status_t st = NULL;
  for (size_t i = 0; !st && i < g->n_inputs; i++) {
    int64_t dims[3][ASSAY_MAX_RANK] = {{0}};
    int rank = 0;
    bool values, ranged;
    st = is_ranged(l, g->inputs[i], &values, &ranged);
    if (st || !ranged || !shapes_of(l->build->inputs, g->inputs[i]->name, values, &rank, dims))
      continue;
    for (int k = 0; k < 3; k++) {
      put_name(&texts[k], g->inputs[i]->name);
      assay_str_append(&texts[k], ":");
      put_dims(&texts[k], rank, dims[k]);
    }
  }
  for (int k = 0; k < 3; k++) {
    if (!st && texts[k].len)
      st = add_text(l, names[k], &texts[k]);
    else
      assay_str_deinit(&texts[k]);
  }
  return st;
}

static assay_status_t add_all_shapes(line_t* l) {
  const pg_args_t* a = l->j->args;
  size_t n = a->at[PG_FLAG_trt_min_shapes].n_lists;
  if (a->at[PG_FLAG_trt_opt_shapes].n_lists > n) n = a->at[PG_FLAG_trt_opt_shapes].n_lists;
  if (a->at[PG_FLAG_trt_max_shapes].n_lists > n) n = a->at[PG_FLAG_trt_max_shapes].n_lists;
  if (n) return add_profiles(l, n);
  if (l->build->inputs) return add_run_shapes(l);
  return add_shapes(l, PG_FLAG_input_shapes, "--optShapes", pg_words(a, PG_FLAG_input_shapes));
}

// ---- layers -------------------------------------------------------------------------------------

static const assay_node_t* find_label(const assay_model_t* m, const char* label) {
  for (size_t g = 0; g < m->n_graphs; g++)
    for (size_t i = 0; i < m->graphs[g]->n_nodes; i++)
      if (strcmp(m->graphs[g]->nodes[i]->label, label) == 0) return m->graphs[g]->nodes[i];
  return NULL;
}

static void put_layer(assay_str_t* out, const char* label, const char* type) {
  put_name(out, label);
  assay_str_printf_raw(out, ":%s", type);
}

// A name, or all names that a pattern fits.
static assay_status_t put_layers(line_t* l, const char* word, assay_str_t* out) {
  const assay_model_t* m = l->model;
  pg_pair_t pair;
  ASSAY_TRY(pg_pair_split(l->j->arena, word, &pair));
  if (!*pair.name)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "--layer-precisions: '%s' is not NAME:TYPE, such as conv1:float32", word);
  const assay_type_t known = pg_type_parse(pair.value);
  const char* type = known ? trt_type_word(known) : pair.value;
  if (find_label(m, pair.name) || !strpbrk(pair.name, "*?["))
    return put_layer(out, pair.name, *type ? type : pair.value), NULL;
  bool any = false;
  for (size_t g = 0; g < m->n_graphs; g++)
    for (size_t i = 0; i < m->graphs[g]->n_nodes; i++) {
      const char* label = m->graphs[g]->nodes[i]->label;
      if (!pg_fits(pair.name, label)) continue;
      put_layer(out, label, *type ? type : pair.value);
      any = true;
    }
  if (!any) pg_log(PG_WARNING, "--layer-precisions: no layer's name fits '%s'", pair.name);
  return NULL;
}

static assay_status_t add_layers(line_t* l) {
  const pg_args_t* a = l->j->args;
  const pg_words_t *given = pg_words(a, PG_FLAG_layer_precisions), *more = l->build->layers;
  const char* word = NULL;
  const char* constraints = more ? "obey" : pg_text(a, PG_FLAG_precision_constraints);
  assay_str_t text = {0};
  assay_status_t st = NULL;
  // Of several for one layer the last one counts: the user's.
  for (size_t i = 0; !st && more && i < more->n; i++) st = put_layers(l, more->items[i], &text);
  for (size_t i = 0; !st && i < given->n; i++) st = put_layers(l, given->items[i], &text);
  const bool any = text.len;
  if (!st && any) st = add_text(l, "--layerPrecisions", &text);
  assay_str_deinit(&text);
  if (st || !(any || pg_given(a, PG_FLAG_precision_constraints))) return st;
  ASSAY_TRY(assay_arena_printf(l->j->arena, &word, "--precisionConstraints=%s", constraints));
  return add(l, word);
}

// ---- the ends -----------------------------------------------------------------------------------

static assay_status_t add_ends(line_t* l) {
  const assay_graph_t* g = l->model->graph;
  const bool formats = !l->build->aside;  // an engine beside the line's own takes and gives rows
  assay_str_t in = {0}, out = {0};
  if (formats) ASSAY_TRY(pg_warn_of_ends(l->j, g));
  assay_status_t st = pg_put_ends(l->j, g->inputs, g->n_inputs, formats, &in);
  if (!st) st = pg_put_ends(l->j, g->outputs, g->n_outputs, formats, &out);
  if (!st && in.len) st = add_text(l, "--inputIOFormats", &in);
  if (!st && out.len) st = add_text(l, "--outputIOFormats", &out);
  assay_str_deinit(&in);
  assay_str_deinit(&out);
  return st;
}

// ---- the others ---------------------------------------------------------------------------------

static assay_status_t add_sources(line_t* l) {
  const pg_value_t* v = &l->j->args->at[PG_FLAG_tactic_sources];
  assay_str_t text = {0};
  if (!v->given) return NULL;
  for (size_t i = 0; i < v->words.n; i++)
    assay_str_printf_raw(&text, "%s+%s", i ? "," : "", v->words.items[i]);
  if (!v->words.n) assay_str_append(&text, "+OWN");  // none of those from outside
  return add_text(l, "--tacticSources", &text);
}

static assay_status_t add_pools(line_t* l) {
  static const char* const names[][2] = {{"workspace", "workspace"},
                                         {"dla_managed_sram", "dlaSRAM"},
                                         {"dla_local_dram", "dlaLocalDRAM"},
                                         {"dla_global_dram", "dlaGlobalDRAM"},
                                         {"tactic_shared_memory", "tacticSharedMem"},
                                         {"tactic_dram", NULL}};
  const pg_words_t* words = pg_words(l->j->args, PG_FLAG_pool_limit);
  assay_str_t text = {0};
  for (size_t i = 0; i < words->n; i++) {
    pg_pair_t pair;
    size_t k = 0;
    assay_status_t st = pg_pair_split(l->j->arena, words->items[i], &pair);
    while (k < 6 && strcmp(names[k][0], pair.name) != 0) k++;
    if (!st && k == 6)
      st = ASSAY_ERROR(
          ASSAY_INVALID_ARGUMENT,
          "--pool-limit: '%s' is not POOL:SIZE with a pool of workspace, dla_managed_sram, "
          "dla_local_dram, dla_global_dram, tactic_dram, tactic_shared_memory",
          words->items[i]);
    if (st) return assay_str_deinit(&text), st;
    if (!names[k][1]) {
      pg_log(PG_WARNING, "--pool-limit %s has no effect in Assay: a CPU has no such memory",
             pair.name);
      continue;
    }
    const char last = *pair.value ? pair.value[strlen(pair.value) - 1] : 0;
    assay_str_printf_raw(&text, "%s%s:%s%s", text.len ? "," : "", names[k][1], pair.value,
                         isdigit((unsigned char)last) ? "B" : "");
  }
  return text.len ? add_text(l, "--memPoolSize", &text) : NULL;
}

static assay_status_t add_files(line_t* l) {
  const pg_args_t* a = l->j->args;
  const char* word = NULL;
  const char* times = pg_text(a, PG_FLAG_load_timing_cache);
  const char* ranges = pg_text(a, PG_FLAG_calibration_cache);
  if (times && access(times, F_OK) != 0)
    pg_log(PG_WARNING, "--load-timing-cache: '%s' does not exist: no times are known", times);
  if (!times) times = pg_text(a, PG_FLAG_save_timing_cache);
  if (times) {
    ASSAY_TRY(assay_arena_printf(l->j->arena, &word, "--timingCacheFile=%s", times));
    ASSAY_TRY(add(l, word));
  }
  if (!ranges || access(ranges, F_OK) != 0) return NULL;  // build.c writes it
  ASSAY_TRY(assay_arena_printf(l->j->arena, &word, "--calib=%s", ranges));
  return add(l, word);
}

assay_status_t pg_build_line(pg_job_t* j, const pg_build_t* b, const assay_model_t* model,
                             pg_words_t* out) {
  const char* word = NULL;
  line_t l = {.j = j, .build = b, .model = model};
  ASSAY_TRY(assay_arena_printf(j->arena, &word, "--onnx=%s", j->args->positional.items[0]));
  ASSAY_TRY(add(&l, word));
  ASSAY_TRY(add_same(&l));
  ASSAY_TRY(add_all_shapes(&l));
  ASSAY_TRY(add_layers(&l));
  ASSAY_TRY(add_ends(&l));
  ASSAY_TRY(add_sources(&l));
  ASSAY_TRY(add_pools(&l));
  ASSAY_TRY(add_files(&l));
  *out = (pg_words_t){l.words, l.n};
  return NULL;
}
