// Schemas of operators outside the onnx package, from the text in their rows.
#include "ops/schema_text.h"

#include <ctype.h>
#include <limits.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "ops/op.h"

// ---- words ----------------------------------------------------------------------------------

typedef struct scanner {
  const char* p;
  const char* error;  // NULL: fine so far
} scanner_t;

static void skip_space(scanner_t* s) {
  while (*s->p == ' ') s->p++;
}

static bool take(scanner_t* s, const char* token) {
  skip_space(s);
  size_t n = strlen(token);
  if (strncmp(s->p, token, n) != 0) return false;
  s->p += n;
  return true;
}

// A word of letters, digits and what `more` lists. NULL: no memory, or no word.
static const char* word(scanner_t* s, const char* more) {
  skip_space(s);
  const char* start = s->p;
  while (isalnum((unsigned char)*s->p) || *s->p == '_' || (*s->p && strchr(more, *s->p))) s->p++;
  if (s->p == start && !s->error) s->error = "a word is missing";
  return strndup(start, (size_t)(s->p - start));
}

static uint32_t bit(assay_type_t t) { return UINT32_C(1) << t; }

enum { EVERY = (1 << ASSAY_TYPE_COUNT) - 2 };  // all tensor types

// Adds a type name or a shorthand to a set.
static bool add_type(assay_typeset_t* set, const char* name) {
  static const struct {
    const char* name;
    uint32_t mask;
  } shorthands[] = {
      {"FLOAT", 1 << ASSAY_TYPE_FLOAT | 1 << ASSAY_TYPE_FLOAT16 | 1 << ASSAY_TYPE_DOUBLE |
                    1 << ASSAY_TYPE_BFLOAT16},
      {"INT", 1 << ASSAY_TYPE_INT8 | 1 << ASSAY_TYPE_INT16 | 1 << ASSAY_TYPE_INT32 |
                  1 << ASSAY_TYPE_INT64 | 1 << ASSAY_TYPE_UINT8 | 1 << ASSAY_TYPE_UINT16 |
                  1 << ASSAY_TYPE_UINT32 | 1 << ASSAY_TYPE_UINT64},
      {"F8", 1 << ASSAY_TYPE_FLOAT8E4M3FN | 1 << ASSAY_TYPE_FLOAT8E4M3FNUZ |
                 1 << ASSAY_TYPE_FLOAT8E5M2 | 1 << ASSAY_TYPE_FLOAT8E5M2FNUZ},
      {"ALL", EVERY},
  };
  for (size_t i = 0; i < sizeof shorthands / sizeof *shorthands; i++) {
    if (strcmp(name, shorthands[i].name) == 0) {
      set->tensor |= shorthands[i].mask;
      return true;
    }
  }
  if (strncmp(name, "seq(", 4) == 0) {
    char inner[32] = {0};
    strncpy(inner, name + 4, sizeof inner - 1);
    inner[strcspn(inner, ")")] = 0;
    assay_typeset_t of = {0};
    if (!add_type(&of, inner)) return false;
    set->seq |= of.tensor;
    return true;
  }
  assay_type_t type = assay_type_parse(name);
  if (type == ASSAY_TYPE_UNDEFINED) return false;
  set->tensor |= bit(type);
  return true;
}

// ---- parts ----------------------------------------------------------------------------------

enum { MAX_PARTS = 64 };

typedef struct parse {
  scanner_t s;
  assay_param_t params[2][MAX_PARTS];  // inputs, outputs
  int n_params[2];
  assay_attr_spec_t attrs[MAX_PARTS];
  int n_attrs;
} parse_t;

static void parse_params(parse_t* p, int side) {
  skip_space(&p->s);
  if (*p->s.p == '|' || *p->s.p == 0 || strncmp(p->s.p, "->", 2) == 0) return;
  do {
    if (p->n_params[side] == MAX_PARTS) {
      p->s.error = "too many parameters";
      return;
    }
    assay_param_t* q = &p->params[side][p->n_params[side]++];
    q->name = word(&p->s, "");
    q->is_homogeneous = true;
    q->is_optional = take(&p->s, "?");
    q->is_variadic = take(&p->s, "*");
    q->min_arity = q->is_variadic ? 0 : 1;
    if (!take(&p->s, ":") && !p->s.error) p->s.error = "':' is missing after a parameter";
    q->type = word(&p->s, "()");
  } while (!p->s.error && take(&p->s, ","));
}

static void parse_attrs(parse_t* p) {
  static const struct {
    const char* kind;
    assay_attr_type_t type;
  } kinds[] = {{"i", ASSAY_ATTR_INT},     {"f", ASSAY_ATTR_FLOAT},   {"s", ASSAY_ATTR_STRING},
               {"t", ASSAY_ATTR_TENSOR},  {"g", ASSAY_ATTR_GRAPH},   {"is", ASSAY_ATTR_INTS},
               {"fs", ASSAY_ATTR_FLOATS}, {"ss", ASSAY_ATTR_STRINGS}};
  skip_space(&p->s);
  if (*p->s.p == '|' || *p->s.p == 0) return;
  do {
    if (p->n_attrs == MAX_PARTS) {
      p->s.error = "too many attributes";
      return;
    }
    assay_attr_spec_t* a = &p->attrs[p->n_attrs++];
    a->name = word(&p->s, "");
    if (!take(&p->s, ":") && !p->s.error) p->s.error = "':' is missing after an attribute";
    const char* kind = word(&p->s, "");
    for (size_t i = 0; kind && i < sizeof kinds / sizeof *kinds; i++)
      if (strcmp(kind, kinds[i].kind) == 0) a->type = kinds[i].type;
    free((void*)(uintptr_t)kind);
    if (!a->type && !p->s.error) p->s.error = "unknown kind of attribute";
    a->required = take(&p->s, "!");
    if (take(&p->s, "=")) {
      const char* value = word(&p->s, "+-.");
      a->has_default = true;
      a->s = value;
      if (value && a->type == ASSAY_ATTR_INT) a->i = strtoll(value, NULL, 10);
      if (value && a->type == ASSAY_ATTR_FLOAT) a->f = (double)strtof(value, NULL);
    }
  } while (!p->s.error && take(&p->s, ","));
}

// "T=float16 float; U=int32": gives every parameter of the variable its types.
static void parse_variables(parse_t* p) {
  do {
    skip_space(&p->s);
    if (!*p->s.p) return;
    const char* variable = word(&p->s, "");
    if (!take(&p->s, "=") && !p->s.error) p->s.error = "'=' is missing after a type variable";
    assay_typeset_t set = {0};
    while (!p->s.error) {
      skip_space(&p->s);
      if (!*p->s.p || *p->s.p == ';') break;
      const char* name = word(&p->s, "()");
      if (!name || !add_type(&set, name)) p->s.error = "unknown type";
      free((void*)(uintptr_t)name);
    }
    for (int side = 0; variable && side < 2; side++)
      for (int i = 0; i < p->n_params[side]; i++)
        if (p->params[side][i].type && strcmp(p->params[side][i].type, variable) == 0)
          p->params[side][i].types = set;
    free((void*)(uintptr_t)variable);
  } while (!p->s.error && take(&p->s, ";"));
}

static const char no_variable[] = "";

// Parameters whose type is not a variable name a type themselves.
static void finish_params(parse_t* p) {
  for (int side = 0; side < 2; side++) {
    for (int i = 0; i < p->n_params[side]; i++) {
      assay_param_t* q = &p->params[side][i];
      const assay_typeset_t* t = &q->types;
      if (!q->type || t->tensor || t->seq) continue;
      if (!add_type(&q->types, q->type) && !p->s.error)
        p->s.error = "a parameter has an unknown type";
      free((void*)(uintptr_t)q->type);
      q->type = no_variable;
    }
  }
}

// Words belong to their parts.
static void free_words(const assay_param_t* params, int n) {
  for (int i = 0; i < n; i++) {
    free((void*)(uintptr_t)params[i].name);
    if (params[i].type != no_variable) free((void*)(uintptr_t)params[i].type);
  }
}

static void free_attr_words(const assay_attr_spec_t* attrs, int n) {
  for (int i = 0; i < n; i++) {
    free((void*)(uintptr_t)attrs[i].name);
    free((void*)(uintptr_t)attrs[i].s);
  }
}

// Whether there was memory for all words.
static bool has_words(const parse_t* p) {
  for (int side = 0; side < 2; side++)
    for (int i = 0; i < p->n_params[side]; i++)
      if (!p->params[side][i].name || !p->params[side][i].type) return false;
  for (int i = 0; i < p->n_attrs; i++)
    if (!p->attrs[i].name || (p->attrs[i].has_default && !p->attrs[i].s)) return false;
  return true;
}

void assay_schema_text_free(const assay_schema_t* s) {
  free_words(s->inputs, s->n_inputs);
  free_words(s->outputs, s->n_outputs);
  free_attr_words(s->attrs, s->n_attrs);
  free((void*)(uintptr_t)s->inputs);
  free((void*)(uintptr_t)s->outputs);
  free((void*)(uintptr_t)s->attrs);
  free((void*)(uintptr_t)s);
}

static void* copy_of(const void* data, size_t bytes) {
  void* copy = malloc(bytes ? bytes : 1);
  if (copy && bytes) memcpy(copy, data, bytes);
  return copy;
}

// The number of parameters from the first to the last one that must be there, and to the last one.
static void arity(const assay_param_t* params, int n, int* out_min, int* out_max) {
  *out_min = 0;
  *out_max = n;
  for (int i = 0; i < n; i++) {
    if (!params[i].is_optional && !params[i].is_variadic) *out_min = i + 1;
    if (params[i].is_variadic) *out_max = INT_MAX;
  }
}

const assay_schema_t* assay_schema_text_parse(const char* domain, const char* name, int since,
                                              const char* text, const char** out_error) {
  *out_error = NULL;
  parse_t* p = calloc(1, sizeof *p);
  assay_schema_t* schema = calloc(1, sizeof *schema);
  if (!p || !schema) return free(p), free(schema), NULL;
  p->s.p = text;
  parse_params(p, 0);
  if (!p->s.error && !take(&p->s, "->")) p->s.error = "'->' is missing";
  if (!p->s.error) parse_params(p, 1);
  if (!p->s.error && take(&p->s, "|")) parse_attrs(p);
  if (!p->s.error && take(&p->s, "|")) parse_variables(p);
  finish_params(p);
  skip_space(&p->s);
  if (!p->s.error && *p->s.p) p->s.error = "there is more text than expected";
  const char* error = p->s.error;
  *schema = (assay_schema_t){.domain = domain,
                             .name = name,
                             .since = since,
                             .n_inputs = p->n_params[0],
                             .n_outputs = p->n_params[1],
                             .n_attrs = p->n_attrs};
  arity(p->params[0], p->n_params[0], &schema->min_inputs, &schema->max_inputs);
  arity(p->params[1], p->n_params[1], &schema->min_outputs, &schema->max_outputs);
  schema->inputs = copy_of(p->params[0], (size_t)p->n_params[0] * sizeof *p->params[0]);
  schema->outputs = copy_of(p->params[1], (size_t)p->n_params[1] * sizeof *p->params[1]);
  schema->attrs = copy_of(p->attrs, (size_t)p->n_attrs * sizeof *p->attrs);
  *out_error = error;
  if (error || !has_words(p) || !schema->inputs || !schema->outputs || !schema->attrs) {
    free_words(p->params[0], p->n_params[0]);
    free_words(p->params[1], p->n_params[1]);
    free_attr_words(p->attrs, p->n_attrs);
    free((void*)(uintptr_t)schema->inputs);
    free((void*)(uintptr_t)schema->outputs);
    free((void*)(uintptr_t)schema->attrs);
    free(schema);
    schema = NULL;
  }
  free(p);
  return schema;
}

// ---- the table, made on first use -------------------------------------------------------------

static pthread_once_t once = PTHREAD_ONCE_INIT;
static const assay_schema_t** table;
static size_t n_table;

static void make_table(void) {
  size_t n = 0;
  for (size_t f = 0; f < assay_op_family_count(); f++)
    for (const assay_op_t* op = assay_op_family(f); op->name; op++) n += op->schema != NULL;
  table = calloc(n + 1, sizeof *table);
  for (size_t f = 0; table && f < assay_op_family_count(); f++) {
    for (const assay_op_t* op = assay_op_family(f); op->name; op++) {
      const char* error;
      if (!op->schema) continue;
      table[n_table] = assay_schema_text_parse(op->domain, op->name, op->since, op->schema, &error);
      if (table[n_table]) n_table++;
    }
  }
}

const assay_schema_t* assay_schema_text_find(const char* domain, const char* name,
                                             int64_t version) {
  pthread_once(&once, make_table);
  const assay_schema_t* found = NULL;
  for (size_t i = 0; i < n_table; i++) {
    const assay_schema_t* s = table[i];
    if (strcmp(s->name, name) == 0 && strcmp(s->domain, domain) == 0 && s->since <= version &&
        (!found || s->since > found->since))
      found = s;
  }
  return found;
}

int assay_schema_text_newest(const char* domain) {
  pthread_once(&once, make_table);
  int newest = 0;
  for (size_t i = 0; i < n_table; i++)
    if (strcmp(table[i]->domain, domain) == 0 && table[i]->since > newest) newest = table[i]->since;
  return newest;
}
