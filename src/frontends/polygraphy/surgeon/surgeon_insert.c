// polygraphy surgeon insert: a node between tensors, in the place of what lay there.
#include <stdlib.h>
#include <string.h>

#include "edit/part.h"
#include "frontends/polygraphy/model.h"

// ---- attributes ---------------------------------------------------------------------------------

static bool is_quoted(const char* text) {
  const size_t n = strlen(text);
  return n > 1 && (*text == '\'' || *text == '"') && text[n - 1] == *text;
}

// What a word is: a whole number, a number, or text.
static assay_attr_type_t kind_of(const char* text) {
  char* end;
  if (is_quoted(text) || !*text) return ASSAY_ATTR_STRING;
  (void)strtoll(text, &end, 10);
  if (!*end) return ASSAY_ATTR_INT;
  (void)strtod(text, &end);
  return *end ? ASSAY_ATTR_STRING : ASSAY_ATTR_FLOAT;
}

static assay_status_t read_text(assay_arena_t* arena, const char* text, assay_string_t* out) {
  const bool quoted = is_quoted(text);
  out->len = strlen(text) - (quoted ? 2 : 0);
  return assay_arena_strndup(arena, text + quoted, out->len, &out->text);
}

static assay_status_t read_one(assay_arena_t* arena, const char* text, assay_attr_t* a) {
  a->type = kind_of(text);
  a->n = 1;
  if (a->type == ASSAY_ATTR_INT) return pg_whole("--attrs", text, &a->u.i);
  if (a->type == ASSAY_ATTR_STRING) return read_text(arena, text, &a->u.s);
  double x;
  ASSAY_TRY(pg_number("--attrs", text, &x));
  a->u.f = (float)x;
  return NULL;
}

static assay_status_t read_list(assay_arena_t* arena, const pg_words_t* words, assay_attr_t* a) {
  int64_t* ints = NULL;
  float* floats = NULL;
  assay_string_t* strings = NULL;
  assay_attr_type_t kind = ASSAY_ATTR_INT;
  for (size_t i = 0; i < words->n; i++) {
    const assay_attr_type_t k = kind_of(words->items[i]);
    if (k == ASSAY_ATTR_STRING || (k == ASSAY_ATTR_FLOAT && kind == ASSAY_ATTR_INT)) kind = k;
  }
  ASSAY_TRY(assay_arena_new(arena, words->n, sizeof *ints, &ints));
  ASSAY_TRY(assay_arena_new(arena, words->n, sizeof *floats, &floats));
  ASSAY_TRY(assay_arena_new(arena, words->n, sizeof *strings, &strings));
  a->n = words->n;
  for (size_t i = 0; i < words->n; i++) {
    double x = 0;
    if (kind == ASSAY_ATTR_INT) ASSAY_TRY(pg_whole("--attrs", words->items[i], &ints[i]));
    if (kind == ASSAY_ATTR_FLOAT) ASSAY_TRY(pg_number("--attrs", words->items[i], &x));
    if (kind == ASSAY_ATTR_STRING) ASSAY_TRY(read_text(arena, words->items[i], &strings[i]));
    floats[i] = (float)x;
  }
  if (kind == ASSAY_ATTR_INT) return a->type = ASSAY_ATTR_INTS, a->u.ints = ints, NULL;
  if (kind == ASSAY_ATTR_FLOAT) return a->type = ASSAY_ATTR_FLOATS, a->u.floats = floats, NULL;
  return a->type = ASSAY_ATTR_STRINGS, a->u.strings = strings, NULL;
}

// "name=value": 1, 0.5, text, 'text', [1,2].
static assay_status_t read_attr(assay_arena_t* arena, const char* word, assay_attr_t* a) {
  const char* equals = strchr(word, '=');
  pg_words_t words = {0};
  *a = (assay_attr_t){.doc = "", .ref = ""};
  if (!equals || equals == word)
    return ASSAY_ERROR(ASSAY_INVALID_ARGUMENT, "--attrs: '%s' is not NAME=VALUE", word);
  ASSAY_TRY(assay_arena_strndup(arena, word, (size_t)(equals - word), &a->name));
  if (equals[1] != '[' && equals[1] != '(') return read_one(arena, equals + 1, a);
  ASSAY_TRY(pg_list_split(arena, "--attrs", equals + 1, &words));
  return read_list(arena, &words, a);
}

// ---- the node -----------------------------------------------------------------------------------

static assay_status_t read_node(pg_job_t* j, assay_part_node_t* out) {
  const pg_words_t *in = pg_words(j->args, PG_FLAG_inputs),
                   *to = pg_words(j->args, PG_FLAG_outputs),
                   *words = pg_words(j->args, PG_FLAG_attrs);
  assay_attr_t* attrs = NULL;
  ASSAY_TRY(assay_arena_new(j->arena, words->n, sizeof *attrs, &attrs));
  for (size_t i = 0; i < words->n; i++) ASSAY_TRY(read_attr(j->arena, words->items[i], &attrs[i]));
  const char* name = pg_text(j->args, PG_FLAG_name);
  *out = (assay_part_node_t){.op_type = pg_text(j->args, PG_FLAG_op),
                             .name = name ? name : "",
                             .inputs = in->items,
                             .outputs = to->items,
                             .n_inputs = in->n,
                             .n_outputs = to->n,
                             .attrs = attrs,
                             .n_attrs = words->n};
  return NULL;
}

assay_status_t pg_run_surgeon_insert(pg_job_t* j) {
  assay_part_node_t node;
  assay_model_t *m = NULL, *made = NULL;
  ASSAY_TRY(read_node(j, &node));
  ASSAY_TRY(pg_load_model(j, &m));
  assay_status_t st = pg_report_model("Original Model:", m);
  if (!st) st = assay_part_insert(m, &node, &made);
  if (!st) st = pg_save_model(j, made, pg_text(j->args, PG_FLAG_output));
  if (!st) st = pg_report_model("New Model:", made);
  assay_model_release(made);
  assay_model_release(m);
  return st;
}
