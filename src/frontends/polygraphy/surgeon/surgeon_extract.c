// polygraphy surgeon extract: a part of a model, by its inputs and outputs.
#include <string.h>
#include <strings.h>

#include "base/alloc.h"
#include "base/shown.h"
#include "edit/part.h"
#include "frontends/polygraphy/data/feed.h"
#include "frontends/polygraphy/model.h"

// ---- the ends -----------------------------------------------------------------------------------

static bool is_auto(const char* text) { return strcasecmp(text, "auto") == 0; }

static assay_status_t read_type(const char* flag, const char* text, assay_type_t* out) {
  *out = is_auto(text) ? ASSAY_TYPE_UNDEFINED : pg_type_parse(text);
  if (*out || is_auto(text)) return NULL;
  return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                     "%s: '%s' is not a data type: say auto, float32, float16, int64 ...", flag,
                     text);
}

static assay_status_t read_shape(assay_arena_t* arena, const char* flag, const char* text,
                                 assay_given_type_t* out) {
  pg_words_t words = {0};
  if (is_auto(text)) return NULL;
  ASSAY_TRY(pg_list_split(arena, flag, text, &words));
  if (words.n > ASSAY_MAX_RANK)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "%s: '%s' has more than %d sizes", flag, text,
                       (int)ASSAY_MAX_RANK);
  out->has_shape = true;
  out->rank = (int)words.n;
  out->dims = words.items;
  return NULL;
}

// "name:shape:dtype", or "name:dtype" of outputs; names may have colons in them.
static assay_status_t read_end(assay_arena_t* arena, const char* flag, bool with_shape,
                               const char* word, assay_part_end_t* out) {
  pg_pair_t type, shape = {0};
  *out = (assay_part_end_t){0};
  ASSAY_TRY(pg_pair_split(arena, word, &type));
  if (with_shape && *type.name) ASSAY_TRY(pg_pair_split(arena, type.name, &shape));
  out->name = with_shape ? shape.name : type.name;
  if (!out->name || !*out->name)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "%s: '%s' is not %s, such as '%s'", flag, word,
                       with_shape ? "NAME:SHAPE:DTYPE" : "NAME:DTYPE",
                       with_shape ? "x:[1,3,4]:float32' or 'x:auto:auto" : "y:float32' or 'y:auto");
  ASSAY_TRY(read_type(flag, type.value, &out->type.elem));
  return with_shape ? read_shape(arena, flag, shape.value, &out->type) : NULL;
}

static assay_status_t read_ends(assay_arena_t* arena, const char* flag, bool with_shape,
                                const pg_words_t* words, const assay_part_end_t** out) {
  assay_part_end_t* ends = NULL;
  ASSAY_TRY(assay_arena_new(arena, words->n, sizeof *ends, &ends));
  for (size_t i = 0; i < words->n; i++)
    ASSAY_TRY(read_end(arena, flag, with_shape, words->items[i], &ends[i]));
  *out = ends;
  return NULL;
}

static assay_status_t read_part(pg_job_t* j, assay_part_t* out) {
  const pg_words_t *in = pg_words(j->args, PG_FLAG_inputs),
                   *to = pg_words(j->args, PG_FLAG_outputs);
  *out = (assay_part_t){.n_in = in->n,
                        .n_out = to->n,
                        .keep_in = !pg_given(j->args, PG_FLAG_inputs),
                        .keep_out = !pg_given(j->args, PG_FLAG_outputs)};
  ASSAY_TRY(read_ends(j->arena, "--inputs", true, in, &out->in));
  return read_ends(j->arena, "--outputs", false, to, &out->out);
}

// ---- types that are not given -------------------------------------------------------------------

static bool lacks(const assay_part_end_t* end, bool with_shape, const assay_valtype_t* known) {
  const bool type = end->type.elem || (known && (known->elem || known->kind != ASSAY_KIND_TENSOR));
  const bool shape = end->type.has_shape || !with_shape || (known && known->has_shape);
  return !type || !shape;
}

// Whether something is not known of an end: from what the file declares, or from inference.
static bool is_lacking(const assay_part_t* part, const assay_model_t* m, bool inferred) {
  for (size_t i = 0; i < part->n_in + part->n_out; i++) {
    const bool in = i < part->n_in;
    const assay_part_end_t* end = in ? &part->in[i] : &part->out[i - part->n_in];
    const assay_value_t* v = assay_graph_find(m->graph, end->name);
    if (v && lacks(end, in, inferred ? v->type : v->declared)) return true;
  }
  return false;
}

static assay_status_t run_for_types(pg_job_t* j, assay_model_t* ready) {
  assay_saved_t feed = {0};
  assay_tensor_t** inputs = NULL;
  ASSAY_TRY(pg_feed_first(j, ready->graph, &feed, &inputs));
  assay_status_t st = assay_types_measure(ready, inputs);
  assay_free(inputs);
  assay_saved_deinit(&feed);
  return assay_status_note(st, "running the model to learn its shapes");
}

// *out stays NULL where the line says all.
static assay_status_t find_types(pg_job_t* j, const assay_part_t* part, assay_model_t* m,
                                 assay_model_t** out) {
  const bool forced = pg_given(j->args, PG_FLAG_force_fallback_shape_inference);
  assay_model_t* ready = NULL;
  if (!forced && !is_lacking(part, m, false)) return NULL;
  if (!forced)
    pg_log(PG_INFO,
           "Running shape inference to derive shapes and/or data types for `auto` arguments.\n"
           "To avoid this, you can specify the shapes and data types explicitly.");
  ASSAY_TRY(pg_prepare_model(j, m, true, &ready));
  const bool still = !forced && is_lacking(part, ready, true);
  if (still)
    pg_log(PG_WARNING,
           "Some tensor shapes or dtypes are missing in the model.\nWill run inference to "
           "determine shapes. This may cause some dynamic dimensions to become static.\nTo avoid "
           "this, please provide metadata on the command-line. ");
  if (forced)
    pg_log(
        PG_INFO,
        "Forcing fallback shape inference. This will cause dynamic dimensions to become static.");
  assay_status_t st = forced || still ? run_for_types(j, ready) : NULL;
  if (st) return assay_model_release(ready), st;
  *out = ready;
  return NULL;
}

// ---- the part -----------------------------------------------------------------------------------

static assay_status_t extract(pg_job_t* j, assay_model_t* m) {
  assay_part_t part;
  assay_model_t *types = NULL, *out = NULL;
  assay_str_t notes = {0};
  ASSAY_TRY(pg_report_model("Original Model:", m));
  ASSAY_TRY(read_part(j, &part));
  assay_status_t st = find_types(j, &part, m, &types);
  if (!st) st = assay_part_take(m, &part, types, &notes, &out);
  if (!st && notes.len) {
    notes.text[notes.len - 1] = 0;  // the last line break
    pg_log(PG_WARNING, ASSAY_LINES, notes.text);
  }
  if (!st) st = pg_save_model(j, out, pg_text(j->args, PG_FLAG_output));
  if (!st) st = pg_report_model("New Model:", out);
  assay_str_deinit(&notes);
  assay_model_release(types);
  assay_model_release(out);
  return st;
}

assay_status_t pg_run_surgeon_extract(pg_job_t* j) {
  assay_model_t* m = NULL;
  ASSAY_TRY(pg_load_model(j, &m));
  assay_status_t st = extract(j, m);
  assay_model_release(m);
  return st;
}
