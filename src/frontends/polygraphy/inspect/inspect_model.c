// polygraphy inspect model: a model or a plan as text, or as a page.
#include <string.h>
#include <unistd.h>

#include "base/shown.h"
#include "frontends/polygraphy/build.h"
#include "frontends/polygraphy/data/combine.h"
#include "frontends/polygraphy/inspect/model_text.h"
#include "frontends/polygraphy/inspect/visual.h"
#include "frontends/polygraphy/model.h"
#include "frontends/polygraphy/surgeon/bounds.h"
#include "runtime/engine.h"

static bool shows(const pg_job_t* j, const char* what) {
  const pg_words_t* words = pg_words(j->args, PG_FLAG_show);
  for (size_t i = 0; i < words->n; i++)
    if (strcmp(words->items[i], what) == 0) return true;
  return false;
}

// info: of --combine-tensor-info, if it holds anything.
static pg_show_t read_show(const pg_job_t* j, const assay_tensor_info_t* info) {
  return (pg_show_t){.layers = shows(j, "layers"),
                     .attrs = shows(j, "attrs"),
                     .weights = shows(j, "weights"),
                     .info = info->n ? info : NULL};
}

static void warn_unseen(const pg_job_t* j) {
  if (pg_given(j->args, PG_FLAG_combine_tensor_info) && !shows(j, "layers") && !pg_wants_page(j))
    pg_log(PG_WARNING,
           "--combine-tensor-info is shown beside layers: give '--show layers', or --save-visual");
}

// ---- models -------------------------------------------------------------------------------------

static assay_status_t print_model(const assay_model_t* m, pg_show_t show) {
  assay_str_t text = {0};
  pg_put_model(&text, m, show);
  pg_trim(&text);
  assay_status_t st = assay_str_status(&text);
  if (!st) pg_log(PG_INFO, "==== ONNX Model ====\n" ASSAY_LINES, assay_str_get(&text));
  assay_str_deinit(&text);
  return st;
}

static assay_status_t show_model(pg_job_t* j, assay_model_t* m) {
  assay_tensor_info_t info = {0};
  assay_status_t st = pg_read_tensor_info(j, &info);
  if (!st) st = pg_match_model(j, m, &info);
  if (!st && pg_wants_text(j)) st = print_model(m, read_show(j, &info));
  if (!st && pg_given(j->args, PG_FLAG_list_unbounded_dds)) st = pg_list_unbounded(m);
  if (!st && pg_wants_page(j)) st = pg_show_model_page(j, m, read_show(j, &info));
  assay_tensor_info_deinit(&info);
  return st;
}

// What is wrong with a model is no reason not to show it.
static assay_status_t load(pg_job_t* j, assay_model_t** out) {
  const assay_onnx_read_options_t allow = {.undefined = true, .stripped = true};
  assay_model_t* m = NULL;
  if (pg_given(j->args, PG_FLAG_shape_inference)) return pg_load_model(j, out);
  ASSAY_TRY(pg_read_model(j, &allow, &m));
  assay_status_t st = pg_convert_model(j, &m);
  if (st) return assay_model_release(m), st;
  *out = m;
  return NULL;
}

// ---- plans --------------------------------------------------------------------------------------

static assay_status_t print_engine(assay_engine_t* engine, pg_show_t show) {
  assay_str_t text = {0};
  assay_status_t st = pg_put_plan(&text, engine, show);
  pg_trim(&text);
  if (!st) st = assay_str_status(&text);
  if (!st) pg_log(PG_INFO, "==== Assay Plan ====\n" ASSAY_LINES, assay_str_get(&text));
  assay_str_deinit(&text);
  return st;
}

static assay_status_t show_engine(pg_job_t* j, assay_engine_t* engine) {
  assay_tensor_info_t info = {0};
  assay_status_t st = pg_read_tensor_info(j, &info);
  if (!st) st = pg_match_plan(j, engine, &info);
  if (!st && pg_wants_text(j)) st = print_engine(engine, read_show(j, &info));
  if (!st && pg_wants_page(j)) st = pg_show_plan_page(j, engine, read_show(j, &info));
  assay_tensor_info_deinit(&info);
  return st;
}

static assay_status_t inspect_engine(pg_job_t* j, const char* path) {
  assay_engine_t* engine = NULL;
  if (access(path, F_OK) != 0) pg_log(PG_WARNING, "Model path does not exist: %s", path);
  ASSAY_TRY(pg_load_engine(j, path, &engine));
  assay_status_t st = show_engine(j, engine);
  assay_engine_release(engine);
  return st;
}

// The plan that the model would become.
static assay_status_t display_as_plan(pg_job_t* j) {
  assay_model_t* m = NULL;
  pg_built_t built = {0};
  ASSAY_TRY(pg_load_model(j, &m));
  const pg_build_t wanted = {.model = m};
  assay_status_t st = pg_mark_engine(j, m);
  if (!st) st = pg_build_engine(j, &wanted, &built);
  if (!st) st = show_engine(j, built.engine);
  pg_built_deinit(&built);
  assay_model_release(m);
  return st;
}

assay_status_t pg_run_inspect_model(pg_job_t* j) {
  const char* path = j->args->positional.items[0];
  assay_model_t* m = NULL;
  warn_unseen(j);
  if (pg_is_engine(j, path)) return inspect_engine(j, path);
  if (pg_given(j->args, PG_FLAG_convert_to_inspect_model)) return display_as_plan(j);
  ASSAY_TRY(load(j, &m));
  assay_status_t st = show_model(j, m);
  assay_model_release(m);
  return st;
}
