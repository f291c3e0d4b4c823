// The public face of edits: include/assay/edit.h; reports are in report/edit.c.
#include "edit/edit_public.h"

#include <math.h>
#include <string.h>

#include "base/cancel/cancel.h"
#include "edit/requests.h"
#include "onnx/onnx.h"
#include "onnx/sizes.h"

// ---- which edits there are ----------------------------------------------------------------------

const char* assay_edit_name(size_t i) {
  const assay_editor_t* e = assay_editor_at(i);
  return e ? e->name : NULL;
}

const char* assay_edit_summary(size_t i) {
  const assay_editor_t* e = assay_editor_at(i);
  return e ? e->summary : NULL;
}

static const assay_edit_option_t* option_at(size_t i, size_t k) {
  return assay_editor_at(i) ? assay_edit_option_at(assay_editor_at(i), k) : NULL;
}

const char* assay_edit_option_name(size_t i, size_t k) {
  return option_at(i, k) ? option_at(i, k)->name : NULL;
}

const char* assay_edit_option_value(size_t i, size_t k) {
  return option_at(i, k) ? option_at(i, k)->value : NULL;
}

const char* assay_edit_option_help(size_t i, size_t k) {
  return option_at(i, k) ? option_at(i, k)->help : NULL;
}

bool assay_edit_option_repeats(size_t i, size_t k) {
  return option_at(i, k) && option_at(i, k)->field == ASSAY_EDIT_FIELD_WORDS;
}

// ---- editing ------------------------------------------------------------------------------------

static assay_status_t find_editor(const char* name, const assay_editor_t** out) {
  assay_nearest_t near = {.wanted = name};
  *out = assay_editor_find(name);
  if (*out) return NULL;
  for (size_t i = 0; i < assay_editor_count(); i++)
    assay_nearest_offer(&near, assay_editor_at(i)->name);
  return ASSAY_ERROR(ASSAY_NOT_FOUND, "there is no edit '%s'%s", name, ASSAY_NEAREST_TEXT(&near));
}

static assay_status_t check_options(const assay_model_t* model, const assay_edit_options_t* o) {
  if (!model->source)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                       "this model was not read from a file, nor made by an edit: it cannot be "
                       "edited");
  if (o->n_samples < 0)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "%d samples cannot be made", o->n_samples);
  ASSAY_TRY(assay_input_shapes_check(o->n_shapes, o->shapes, model));
  if (!o->samples) return NULL;
  if (!o->samples->n)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "there are no samples; give none to have some made");
  return assay_samples_fit(o->samples, model, false);
}

static assay_status_t run(assay_model_t* model, const char* edit, const assay_edit_options_t* o,
                          assay_arena_t* arena, assay_edited_t* e) {
  const assay_editor_t* editor = NULL;
  assay_edit_requests_t requests;
  ASSAY_TRY(find_editor(edit, &editor));
  ASSAY_TRY(check_options(model, o));
  ASSAY_TRY(assay_edit_requests_read(editor, o->n_requests, o->requests, arena, &requests));
  // Inputs that share a named dimension with one of a given shape follow it.
  const assay_open_sizes_t sizes = {.n_shapes = o->n_shapes, .shapes = o->shapes};
  assay_settled_t settled = {0};
  ASSAY_TRY(assay_sizes_settle(model->source, &sizes, &settled));
  const assay_editor_options_t options = {.given = o->samples,
                                          .n_shapes = settled.n,
                                          .shapes = settled.shapes,
                                          .seed = o->seed,
                                          .n_samples = o->n_samples,
                                          .no_proof = o->no_proof,
                                          .force = o->force,
                                          .progress = o->progress,
                                          .user = o->user};
  assay_status_t st = assay_editor_run(editor, model->source, &requests, &options, &e->result);
  assay_settled_deinit(&settled);
  return st;
}

assay_status_t assay_edit_run(assay_model_t* model, const char* edit,
                              const assay_edit_options_t* options, assay_edited_t** out) {
  assay_edit_options_t o = ASSAY_EDIT_OPTIONS_INIT;
  assay_edited_t* e = NULL;
  assay_arena_t* arena = NULL;
  if (options)  // an older caller's struct may be shorter
    memcpy(&o, options, options->struct_size < sizeof o ? options->struct_size : sizeof o);
  ASSAY_TRY(assay_arena_create(&arena));
  assay_status_t st = ASSAY_NEW(&e);
  if (!st) assay_str_append(&e->model, assay_model_path(model));
  if (!st) st = run(model, edit, &o, arena, e);
  // A proof that could not be made because of it is none.
  if (!st) st = assay_cancel_check();
  if (!st) st = assay_str_status(&e->model);
  assay_arena_destroy(arena);
  if (st) return assay_edited_destroy(e), st;
  *out = e;
  return NULL;
}

void assay_edited_destroy(assay_edited_t* e) {
  if (!e) return;
  assay_edit_result_deinit(&e->result);
  assay_str_deinit(&e->model);
  assay_str_deinit(&e->path);
  assay_free(e);
}

// ---- the proof ----------------------------------------------------------------------------------

assay_edit_verdict_t assay_edited_verdict(const assay_edited_t* e) { return e->result.verdict; }
bool assay_edited_kept_promise(const assay_edited_t* e) { return e->result.kept_promise; }
bool assay_edited_may_write(const assay_edited_t* e) { return e->result.may_write; }
size_t assay_edited_changes(const assay_edited_t* e) { return e->result.n_changed; }
const char* assay_edited_done(const assay_edited_t* e) { return assay_str_get(&e->result.done); }
const char* assay_edited_notes(const assay_edited_t* e) { return assay_str_get(&e->result.notes); }

const char* assay_edited_why_not_proven(const assay_edited_t* e) {
  return assay_str_get(&e->result.why_not);
}

size_t assay_edited_output_count(const assay_edited_t* e) { return e->result.proof.n; }

static const assay_proof_output_t* output_at(const assay_edited_t* e, size_t i) {
  return i < e->result.proof.n ? &e->result.proof.outputs[i] : NULL;
}

const char* assay_edited_output_name(const assay_edited_t* e, size_t i) {
  return output_at(e, i) ? output_at(e, i)->name : NULL;
}

double assay_edited_output_moved(const assay_edited_t* e, size_t i) {
  const assay_proof_output_t* o = output_at(e, i);
  if (!o) return (double)NAN;
  return o->truth.same_shape && !o->truth.broken ? o->truth.largest : (double)INFINITY;
}

double assay_edited_output_scale(const assay_edited_t* e, size_t i) {
  return output_at(e, i) ? output_at(e, i)->truth.scale : (double)NAN;
}

// ---- the new model ------------------------------------------------------------------------------

static assay_status_t check_may_write(const assay_edited_t* e) {
  if (e->result.may_write) return NULL;
  return ASSAY_ERROR(ASSAY_UNSUPPORTED, "%s",
                     e->result.verdict == ASSAY_EDIT_NOT_PROVEN
                         ? "the edit could not be proven: set no_proof to have its model all the "
                           "same"
                         : "the edit moves the outputs by more than it may: set force to have its "
                           "model all the same");
}

assay_status_t assay_edited_model(const assay_edited_t* e, assay_model_t** out) {
  ASSAY_TRY(check_may_write(e));
  return assay_onnx_open(e->result.model, true, 0, NULL, out);
}

assay_status_t assay_edited_write(assay_edited_t* e, const char* path) {
  assay_str_t copy = {0};
  ASSAY_TRY(check_may_write(e));
  assay_str_append(&copy, path);
  assay_status_t st = assay_str_status(&copy);
  if (!st) st = assay_edit_result_write(&e->result, path);
  if (st) return assay_str_deinit(&copy), st;
  assay_str_deinit(&e->path);
  e->path = copy;
  return NULL;
}
