// Engines of the line's model with other precisions, again and again.
#include "frontends/polygraphy/debug/debug_builder.h"

#include "frontends/polygraphy/build.h"
#include "frontends/polygraphy/model.h"

assay_status_t pg_builder_open(pg_job_t* j, pg_builder_t* out) {
  assay_model_t *read = NULL, *ready = NULL;
  ASSAY_TRY(pg_load_model(j, &read));
  assay_status_t st = pg_mark_engine(j, read);
  if (!st) st = pg_prepare_model(j, read, false, &ready);
  if (st) return assay_model_release(read), st;
  out->job = j;
  out->read = read;
  out->model = ready;
  return NULL;
}

void pg_builder_close(pg_builder_t* b) {
  assay_model_release(b->read);
  assay_model_release(b->model);
  assay_str_deinit(&b->timings);
}

// "name:float32" of each node.
static assay_status_t make_words(assay_arena_t* arena, const assay_node_t* const* nodes, size_t n,
                                 assay_format_t format, pg_words_t* out) {
  const char* type = format == ASSAY_FORMAT_FP16 ? "float16" : "float32";
  ASSAY_TRY(assay_arena_new(arena, n, sizeof *out->items, &out->items));
  for (size_t i = 0; i < n; i++)
    ASSAY_TRY(assay_arena_printf(arena, &out->items[i], "%s:%s", nodes[i]->label, type));
  out->n = n;
  return NULL;
}

assay_status_t pg_builder_build(pg_builder_t* b, const assay_node_t* const* nodes, size_t n,
                                assay_format_t format, const char* path) {
  assay_arena_t* arena = NULL;
  pg_words_t words = {0};
  pg_built_t built = {0};
  ASSAY_TRY(assay_arena_create(&arena));
  const pg_build_t how = {.model = b->read,
                          .layers = n ? &words : NULL,
                          .timings = b->keeps_times ? &b->timings : NULL};
  assay_status_t st = make_words(arena, nodes, n, format, &words);
  if (!st) st = pg_build_engine(b->job, &how, &built);
  if (!st) pg_log(PG_INFO, "Saving engine to %s", path);
  if (!st) st = assay_engine_save(built.engine, path);
  pg_built_deinit(&built);
  assay_arena_destroy(arena);
  return st;
}
