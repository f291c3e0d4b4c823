// polygraphy convert: a model into a plan, or into another ONNX model.
#include <string.h>
#include <strings.h>

#include "frontends/polygraphy/build.h"
#include "frontends/polygraphy/inspect/network.h"
#include "frontends/polygraphy/model.h"

typedef enum target { TO_ONNX, TO_PLAN, TO_NETWORK } target_t;

static bool ends_with(const char* text, const char* end) {
  const size_t n = strlen(text), m = strlen(end);
  return n >= m && strcasecmp(text + n - m, end) == 0;
}

// --convert-to, else the end of the output's name.
static assay_status_t choose(const pg_args_t* a, target_t* out) {
  const char* path = pg_text(a, PG_FLAG_output);
  const char* word = pg_text(a, PG_FLAG_convert_to);
  *out = TO_ONNX;
  if (word && strcmp(word, "onnx-like-trt-network") == 0) return *out = TO_NETWORK, NULL;
  if (word ? strcmp(word, "trt") == 0
           : ends_with(path, ".engine") || ends_with(path, ".plan") || ends_with(path, ".trt"))
    return *out = TO_PLAN, NULL;
  if (word || ends_with(path, ".onnx")) return NULL;
  return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                     "What '%s' is to be is not clear: say --convert-to onnx or trt", path);
}

assay_status_t pg_run_convert(pg_job_t* j) {
  const pg_args_t* a = j->args;
  const char* path = pg_text(a, PG_FLAG_output);
  assay_model_t* m = NULL;
  pg_built_t built = {0};
  target_t to;
  if (pg_is_engine(j, a->positional.items[0]))
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                       "'%s' is a plan already: convert takes an ONNX model",
                       a->positional.items[0]);
  ASSAY_TRY(choose(a, &to));
  if (to != TO_ONNX && pg_given(a, PG_FLAG_show_native))
    return pg_build_print_native(j, &(pg_build_t){0}, path);
  if (to == TO_ONNX) {
    ASSAY_TRY(pg_load_model(j, &m));
    assay_status_t st = pg_save_model(j, m, path);
    assay_model_release(m);
    return st;
  }
  // The outputs that are asked for are the plan's own.
  ASSAY_TRY(pg_load_unmarked(j, &m));
  assay_status_t st = pg_mark_engine(j, m);
  if (!st) st = pg_build_engine(j, &(pg_build_t){.model = m}, &built);
  assay_model_release(m);
  if (st) return st;
  if (to == TO_PLAN) {
    pg_log(PG_INFO, "Saving engine to %s", path);
    st = assay_engine_save(built.engine, path);
  } else {
    st = pg_network(&built, &m);
    if (!st) st = pg_save_model(j, m, path);
    if (!st) assay_model_release(m);
  }
  pg_built_deinit(&built);
  return st;
}
