// polygraphy surgeon weight-strip: a model without the data of its weights.
#include <string.h>

#include "base/file.h"
#include "edit/weights/strip.h"
#include "frontends/polygraphy/model.h"
#include "frontends/polygraphy/sparsity_log.h"

// The lines of a file, without the spaces at their ends.
static assay_status_t read_names(pg_job_t* j, const char* path, pg_words_t* out) {
  assay_mapping_t* file = NULL;
  const char* text = NULL;
  size_t n = 1;
  ASSAY_TRY(assay_status_note(assay_mapping_open(path, &file), "--exclude-list"));
  assay_status_t st = assay_arena_strndup(j->arena, (const char*)assay_mapping_data(file),
                                          assay_mapping_size(file), &text);
  assay_mapping_release(file);
  if (st) return st;
  for (const char* c = text; *c; c++) n += *c == '\n';
  ASSAY_TRY(assay_arena_new(j->arena, n, sizeof *out->items, &out->items));
  for (const char* c = text; *c;) {
    size_t len = strcspn(c, "\n");
    const size_t step = len + (c[len] != 0);
    while (len && strchr(" \t\r", c[len - 1])) len--;
    if (len) ASSAY_TRY(assay_arena_strndup(j->arena, c, len, &out->items[out->n++]));
    c += step;
  }
  return NULL;
}

static assay_status_t strip(pg_job_t* j, assay_model_t* m) {
  const char* path = pg_text(j->args, PG_FLAG_exclude_list);
  pg_words_t kept = {0};
  bool* found = NULL;
  size_t n = 0;
  if (path) ASSAY_TRY(read_names(j, path, &kept));
  ASSAY_TRY(assay_arena_new(j->arena, kept.n, sizeof *found, &found));
  pg_log(PG_START, "Beginning weight stripping...");
  pg_log(PG_WARNING,
         "The model is expected to be constant folded to successfully capture all weights eligible "
         "for stripping");
  pg_log(PG_INFO, "Querying Sparse Initializers in the model");
  ASSAY_TRY(pg_sparsity_report(m));
  ASSAY_TRY(assay_strip_weights(m, kept.items, kept.n, found, &n));
  for (size_t i = 0; i < kept.n; i++)
    if (!found[i])
      pg_log(PG_WARNING, "--exclude-list: the model has no weight '%s' that would be stripped",
             kept.items[i]);
  pg_log(PG_FINISH, "Finished stripping %zu weights", n);
  return NULL;
}

assay_status_t pg_run_surgeon_weight_strip(pg_job_t* j) { return pg_change_model(j, strip); }
