// What trtexec keeps in a plan beside what the plan is: how much may be told of it, which of its
// values are debug tensors, which types and layouts its ends were given. A plan that was built with
// none of these has no note: it is what 'assay build' makes.
#include <string.h>

#include "frontends/trtexec/job.h"
#include "frontends/trtexec/log.h"
#include "frontends/trtexec/specs.h"
#include "io/json.h"

static const char schema[] = "assay.trtexec/1";

static json_t* words_json(const char* const* words, size_t n) {
  json_t* list = json_array();
  for (size_t i = 0; i < n; i++) list = assay_json_push(list, assay_json_text(words[i]));
  return list;
}

static json_t* layouts_json(const trt_ends_t* ends) {
  json_t* list = json_array();
  for (size_t i = 0; i < ends->n; i++) {
    const trt_end_t* e = &ends->items[i];
    json_t* one = assay_json_put(json_object(), "name", assay_json_text(e->name));
    one = assay_json_put(one, "end", json_string(e->output ? "output" : "input"));
    list = assay_json_push(list, assay_json_put(one, "layout", json_string(e->layout->word)));
  }
  return list;
}

assay_status_t trt_note_write(trt_job_t* j) {
  const bool usual = trt_is(j->options, TRT_FLAG_profilingVerbosity, "layer_names_only");
  assay_str_t text = {0};
  if (usual && !j->n_debug && !j->all_debug && !j->io_types.n && !j->layouts.n) return NULL;
  json_t* note = json_pack("{s:s, s:b, s:I}", "schema", schema, "all_debug", j->all_debug,
                           "debug_outputs", (json_int_t)j->n_debug_outputs);
  note = assay_json_put(note, "verbosity", assay_json_text(j->verbosity));
  note = assay_json_put(note, "debug", words_json(j->debug, j->n_debug));
  note = assay_json_put(note, "ends", words_json(j->ends.items, j->ends.n));
  note = assay_json_put(note, "types", words_json(j->io_types.items, j->io_types.n));
  note = assay_json_put(note, "layouts", layouts_json(&j->layouts));
  if (!note) return assay_status_no_memory();
  assay_json_print(note, 0, &text);
  json_decref(note);
  assay_status_t st = assay_str_status(&text);
  if (!st) st = assay_engine_set_note(j->engine, assay_str_get(&text));
  assay_str_deinit(&text);
  return st;
}

static assay_status_t read_words(trt_job_t* j, const json_t* list, const char*** out,
                                 size_t* out_n) {
  const size_t n = json_array_size(list);
  ASSAY_TRY(assay_arena_new(j->arena, n, sizeof **out, out));
  for (*out_n = 0; *out_n < n; ++*out_n) {
    const char* text = json_string_value(json_array_get(list, *out_n));
    if (!text) return ASSAY_ERROR(ASSAY_CORRUPT, "what trtexec noted in the plan makes no sense");
    ASSAY_TRY(assay_arena_strdup(j->arena, text, &(*out)[*out_n]));
  }
  return NULL;
}

static assay_status_t read_types(trt_job_t* j, const json_t* list) {
  const char** types = NULL;
  size_t n = 0;
  ASSAY_TRY(read_words(j, list, &types, &n));
  for (size_t i = 0; i < n; i++) ASSAY_TRY(opt_list_add(&j->io_types, types[i]));
  return NULL;
}

// An end that the plan does not have is never asked for.
static bool suits(const assay_engine_t* engine, const char* name, bool output,
                  const trt_layout_t* l) {
  const assay_io_t* io = NULL;
  size_t at = 0;
  assay_status_t st = output ? assay_engine_find_output(engine, name, &at)
                             : assay_engine_find_input(engine, name, &at);
  if (!st) io = output ? assay_engine_output(engine, at) : assay_engine_input(engine, at);
  assay_status_free(st);
  return !io || trt_layout_fits(l, assay_io_rank(io), assay_io_elem(io));
}

static assay_status_t read_layouts(const assay_engine_t* engine, assay_arena_t* arena,
                                   const json_t* list, trt_ends_t* out) {
  for (size_t i = 0; i < json_array_size(list); i++) {
    const json_t* one = json_array_get(list, i);
    const char* name = json_string_value(json_object_get(one, "name"));
    const char* end = json_string_value(json_object_get(one, "end"));
    const char* word = json_string_value(json_object_get(one, "layout"));
    const trt_layout_t* l = word ? trt_layout_find(word, strlen(word)) : NULL;
    if (!name || !end || !l || !suits(engine, name, strcmp(end, "output") == 0, l))
      return ASSAY_ERROR(ASSAY_CORRUPT, "what trtexec noted in the plan makes no sense");
    ASSAY_TRY(assay_arena_strdup(arena, name, &name));
    ASSAY_TRY(trt_ends_add(out, name, strcmp(end, "output") == 0, l));
  }
  return NULL;
}

static bool is_ours(const json_t* note) {
  const char* is = json_string_value(json_object_get(note, "schema"));
  return is && strcmp(is, schema) == 0;
}

assay_status_t trt_note_layouts(const assay_engine_t* engine, assay_arena_t* arena,
                                trt_ends_t* out) {
  const char* text = assay_engine_note(engine);
  json_t* note = NULL;
  if (!text) return NULL;
  ASSAY_TRY(assay_json_parse(text, strlen(text), &note));
  assay_status_t st =
      is_ours(note) ? read_layouts(engine, arena, json_object_get(note, "layouts"), out) : NULL;
  json_decref(note);
  return st;
}

static assay_status_t read_note(trt_job_t* j, const json_t* note) {
  const char* verbosity = json_string_value(json_object_get(note, "verbosity"));
  const json_int_t outputs = json_integer_value(json_object_get(note, "debug_outputs"));
  if (!is_ours(note)) return NULL;  // somebody else's
  const size_t n = assay_engine_output_count(j->engine);
  if (!verbosity || outputs < 0 || (size_t)outputs > n)
    return ASSAY_ERROR(ASSAY_CORRUPT, "what trtexec noted in the plan makes no sense");
  ASSAY_TRY(assay_arena_strdup(j->arena, verbosity, &j->verbosity));
  j->n_debug_outputs = (size_t)outputs;
  j->all_debug = json_is_true(json_object_get(note, "all_debug"));
  ASSAY_TRY(read_words(j, json_object_get(note, "debug"), &j->debug, &j->n_debug));
  const char** ends = NULL;
  size_t n_ends = 0;
  ASSAY_TRY(read_words(j, json_object_get(note, "ends"), &ends, &n_ends));
  j->ends = (assay_words_t){ends, n_ends};
  if (trt_given(j->options, TRT_FLAG_profilingVerbosity))
    trt_warn("--profilingVerbosity has no effect with --loadEngine: the plan was built with %s",
             j->verbosity);
  ASSAY_TRY(read_layouts(j->engine, j->arena, json_object_get(note, "layouts"), &j->layouts));
  return read_types(j, json_object_get(note, "types"));
}

assay_status_t trt_note_read(trt_job_t* j) {
  const char* text = assay_engine_note(j->engine);
  json_t* note = NULL;
  if (!text) return NULL;
  ASSAY_TRY(assay_json_parse(text, strlen(text), &note));
  assay_status_t st = read_note(j, note);
  json_decref(note);
  return st;
}
