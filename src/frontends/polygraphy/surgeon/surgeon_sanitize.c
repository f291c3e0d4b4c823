// polygraphy surgeon sanitize: input shapes, outputs, what is not used, constants.
#include "base/alloc.h"
#include "base/memory.h"
#include "base/shown.h"
#include "edit/cut.h"
#include "edit/fold_constants.h"
#include "edit/types.h"
#include "frontends/polygraphy/data/feed.h"
#include "frontends/polygraphy/model.h"
#include "frontends/polygraphy/surgeon/bounds.h"
#include "onnx/load.h"

// ---- input shapes -------------------------------------------------------------------------------

static assay_status_t check_names(pg_job_t* j, const assay_model_t* m, const pg_words_t* shapes) {
  for (size_t i = 0; i < shapes->n; i++) {
    pg_pair_t pair;
    bool found = false;
    ASSAY_TRY(pg_pair_split(j->arena, shapes->items[i], &pair));
    for (size_t k = 0; k < m->graph->n_inputs; k++)
      found |= !*pair.name || pg_fits(pair.name, m->graph->inputs[k]->name);
    if (!found)
      return ASSAY_ERROR(ASSAY_NOT_FOUND, "--override-input-shapes: the model has no input '%s'",
                         pair.name);
  }
  return NULL;
}

static assay_status_t override_shapes(pg_job_t* j, assay_model_t* m) {
  const pg_words_t* shapes = pg_words(j->args, PG_FLAG_override_input_shapes);
  assay_str_t text = {0};
  ASSAY_TRY(check_names(j, m, shapes));
  for (size_t i = 0; i < m->graph->n_inputs; i++) {
    assay_value_t* v = m->graph->inputs[i];
    const char* shape = NULL;
    pg_words_t dims = {0};
    if (v->constant) continue;
    ASSAY_TRY(pg_pair_find(j->arena, shapes, v->name, &shape));
    if (!shape) continue;
    ASSAY_TRY(pg_list_split(j->arena, "--override-input-shapes", shape, &dims));
    if (dims.n > ASSAY_MAX_RANK)
      return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                         "--override-input-shapes: '%s' has more than %d sizes", shape,
                         (int)ASSAY_MAX_RANK);
    const assay_given_type_t given = {.has_shape = true, .rank = (int)dims.n, .dims = dims.items};
    ASSAY_TRY(assay_types_declare(m, v, &given, NULL));
  }
  assay_types_forget(m);
  for (size_t i = 0; i < m->graph->n_inputs; i++) {
    if (m->graph->inputs[i]->constant) continue;
    assay_str_append(&text, text.len ? ",\n " : "");
    pg_put_tensor_info(&text, m->graph->inputs[i]);
  }
  assay_status_t st = assay_str_status(&text);
  if (!st) pg_log(PG_INFO, "Overriding input shapes to:\n{" ASSAY_LINES "}", assay_str_get(&text));
  assay_str_deinit(&text);
  return st;
}

// ---- types --------------------------------------------------------------------------------------

// A model that is wrong can be cleaned up all the same, unless the line itself made it so.
static assay_status_t let_pass(const pg_job_t* j, const char* what, assay_status_t st) {
  if (!st || assay_status_code(st) == ASSAY_NO_MEMORY ||
      pg_given(j->args, PG_FLAG_override_input_shapes) ||
      pg_given(j->args, PG_FLAG_force_fallback_shape_inference))
    return st;
  pg_log(PG_WARNING, ASSAY_LINES "\nNote: Error was:\n%s", what, assay_status_message(st));
  assay_status_free(st);
  return NULL;
}

// Types that inference knows are written down. A model with functions would lose them, and stays.
static assay_status_t write_types(pg_job_t* j, assay_model_t** m) {
  const bool forced = pg_given(j->args, PG_FLAG_force_fallback_shape_inference);
  assay_model_t* ready = NULL;
  assay_saved_t feed = {0};
  assay_tensor_t** inputs = NULL;
  size_t added;
  if ((*m)->n_functions) return NULL;
  ASSAY_TRY(pg_prepare_model(j, *m, true, &ready));
  assay_status_t st = NULL;
  if (forced) {
    pg_log(PG_INFO,
           "Forcing fallback shape inference. This will cause dynamic dimensions to become "
           "static.");
    st = pg_feed_first(j, ready->graph, &feed, &inputs);
    if (!st) st = assay_types_measure(ready, inputs);
    assay_free(inputs);
    assay_saved_deinit(&feed);
  }
  if (!st) st = assay_types_list(ready, &added);
  for (size_t i = 0; !st && i < ready->graph->n_outputs; i++) {
    assay_value_t* v = ready->graph->outputs[i];
    if (v->type && (v->type->has_shape || !v->declared)) v->declared = v->type;
  }
  if (st) return assay_model_release(ready), st;
  assay_model_release(*m);
  *m = ready;
  return NULL;
}

// ---- constants ----------------------------------------------------------------------------------

static assay_status_t read_requests(const pg_job_t* j, assay_fold_requests_t* out) {
  const char* size = pg_text(j->args, PG_FLAG_fold_size_threshold);
  uint64_t bytes = 0;
  *out = (assay_fold_requests_t){.no_shapes = pg_given(j->args, PG_FLAG_no_fold_shapes),
                                 .has_threshold = size != NULL};
  if (size && !assay_bytes_parse(size, &bytes))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "--fold-size-threshold: '%s' is not a size, such as 1024, 16K or 1M", size);
  out->max_bytes = bytes > INT64_MAX ? INT64_MAX : (int64_t)bytes;
  return NULL;
}

// One pass; *out_folded counts the nodes that went.
static assay_status_t fold_once(pg_job_t* j, const assay_fold_requests_t* requests,
                                assay_model_t** m, size_t* out_folded) {
  assay_model_t *ready = NULL, *made = NULL;
  const size_t before = assay_model_count_nodes(*m);
  ASSAY_TRY(pg_prepare_model(j, *m, true, &ready));
  assay_status_t st = assay_fold_constants(ready, requests, &made);
  assay_model_release(ready);
  if (st) return st;
  const size_t after = assay_model_count_nodes(made);
  *out_folded = before > after ? before - after : 0;
  pg_log_indent(1);
  pg_log(PG_FINISH, "Total Nodes | Original: %5zu, After Folding: %5zu | %5lld Nodes Folded",
         before, after, (long long)before - (long long)after);
  pg_log_indent(-1);
  assay_model_release(*m);
  *m = made;
  return NULL;
}

static assay_status_t fold(pg_job_t* j, assay_model_t** m) {
  const int64_t max =
      pg_given(j->args, PG_FLAG_num_passes) ? pg_int(j->args, PG_FLAG_num_passes) : INT64_MAX;
  assay_fold_requests_t requests;
  size_t folded = 1;
  ASSAY_TRY(read_requests(j, &requests));
  for (int64_t pass = 0; folded && pass < max; pass++) {
    folded = 0;
    pg_log(PG_START, "Folding Constants | Pass %lld", (long long)pass + 1);
    ASSAY_TRY(let_pass(j, "Constant folding pass failed. Skipping subsequent passes.",
                       fold_once(j, &requests, m, &folded)));
  }
  return NULL;
}

static void report_ignored(const pg_job_t* j) {
  static const struct {
    pg_flag_id_t flag;
    const char* name;
  } flags[] = {{PG_FLAG_num_passes, "--num-const-fold-passes"},
               {PG_FLAG_partitioning, "--partitioning"},
               {PG_FLAG_no_fold_shapes, "--fold-shapes"},
               {PG_FLAG_no_per_pass_shape_inference, "--per-pass-shape-inference"},
               {PG_FLAG_fold_size_threshold, "--fold-size-threshold"}};
  for (size_t i = 0; i < sizeof flags / sizeof *flags; i++)
    if (pg_given(j->args, flags[i].flag))
      pg_log(PG_WARNING,
             "Argument: '%s' will be ignored since constant folding is not enabled.\nThis argument "
             "is only valid when the `--fold-constants` option is provided.",
             flags[i].name);
}

// ---- all of it ----------------------------------------------------------------------------------

static assay_status_t sanitize(pg_job_t* j, assay_model_t** m) {
  const pg_args_t* a = j->args;
  const bool folds = pg_given(a, PG_FLAG_fold_constants);
  const pg_marks_t marks = {.names = pg_words(a, PG_FLAG_outputs),
                            .exclude = pg_words(a, PG_FLAG_exclude_outputs),
                            .by_type = pg_words(a, PG_FLAG_outputs_by_type),
                            .flag = "--outputs"};
  if (!folds) report_ignored(j);
  ASSAY_TRY(pg_mark_outputs(*m, &marks));
  if (pg_given(a, PG_FLAG_set_unbounded_dds_upper_bound)) ASSAY_TRY(pg_set_bounds(j, m));
  ASSAY_TRY(pg_report_model("Original Model:", *m));
  if (pg_given(a, PG_FLAG_override_input_shapes)) ASSAY_TRY(override_shapes(j, *m));
  if (pg_given(a, PG_FLAG_cleanup)) ASSAY_TRY(assay_cut_clean(*m));
  if (pg_given(a, PG_FLAG_toposort)) ASSAY_TRY(assay_onnx_sort(*m));
  if (folds) ASSAY_TRY(fold(j, m));
  if (!pg_given(a, PG_FLAG_no_shape_inference))
    ASSAY_TRY(let_pass(j, "ONNX shape inference exited with an error.", write_types(j, m)));
  ASSAY_TRY(pg_save_model(j, *m, pg_text(a, PG_FLAG_output)));
  return pg_report_model("New Model:", *m);
}

assay_status_t pg_run_surgeon_sanitize(pg_job_t* j) {
  assay_model_t* m = NULL;
  ASSAY_TRY(pg_load_model(j, &m));
  assay_status_t st = sanitize(j, &m);
  assay_model_release(m);
  return st;
}
