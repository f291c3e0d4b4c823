// polygraphy inspect model: a model or a plan as text.
#include <string.h>
#include <unistd.h>

#include "cli/polygraphy/bounds.h"
#include "cli/polygraphy/build.h"
#include "cli/polygraphy/model.h"
#include "cli/polygraphy/model_text.h"
#include "runtime/engine.h"

static bool shows(const pg_job_t* j, const char* what) {
  const pg_words_t* words = pg_words(j->args, PG_FLAG_show);
  for (size_t i = 0; i < words->n; i++)
    if (strcmp(words->items[i], what) == 0) return true;
  return false;
}

static pg_show_t read_show(const pg_job_t* j) {
  return (pg_show_t){
      .layers = shows(j, "layers"), .attrs = shows(j, "attrs"), .weights = shows(j, "weights")};
}

// ---- models -------------------------------------------------------------------------------------

static assay_status_t show_model(const pg_job_t* j, const assay_model_t* m) {
  assay_str_t text = {0};
  pg_put_model(&text, m, read_show(j));
  pg_trim(&text);
  assay_status_t st = assay_str_status(&text);
  if (!st) pg_log(PG_INFO, "==== ONNX Model ====\n%s", assay_str_get(&text));
  assay_str_deinit(&text);
  return st ? st : pg_given(j->args, PG_FLAG_list_unbounded_dds) ? pg_list_unbounded(m) : NULL;
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

static assay_status_t show_engine(const pg_job_t* j, assay_engine_t* engine) {
  assay_str_t text = {0};
  assay_status_t st = pg_put_plan(&text, engine, read_show(j));
  pg_trim(&text);
  if (!st) st = assay_str_status(&text);
  if (!st) pg_log(PG_INFO, "==== Assay Plan ====\n%s", assay_str_get(&text));
  assay_str_deinit(&text);
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
  if (pg_is_engine(j, path)) return inspect_engine(j, path);
  if (pg_given(j->args, PG_FLAG_convert_to_inspect_model)) return display_as_plan(j);
  ASSAY_TRY(load(j, &m));
  assay_status_t st = show_model(j, m);
  assay_model_release(m);
  return st;
}
