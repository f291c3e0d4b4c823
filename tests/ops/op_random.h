// Random cases of an operator from its schema and a line of text.
//
// A line says the inputs' shapes, what they hold, and attributes, where the schema leaves that
// open:
//
//   "[n,g*c,h+6]; [g*m,c,k]; ?[g*m] | group=g ?strides=u(1,3) T@float,double"
//
//   inputs    `;` between them. `?` in front: half the time left out; `?1` .. `?9`: together with
// others of the
//             number. `_`: left out. `:uint8`: of this type. `*e`: e times. `seq(e)`: a sequence of
//             e such tensors. `opt`, `box`: in an optional that may be empty, that is not.
//   shapes    sizes as expressions; lists of sizes as capitals ([P,d,Q]); ~S a shape that
// broadcasts to S, ^S the same
//             of S's rank; `#` one size, the number of elements in {=}
//   letters   a to m: 1 to 4. n to z: sometimes 0. A to Z: 0 to 3 sizes of which few are 0. One
// letter is one number in
//             a case.
//   elements  {lo..hi} in this range; {=a,b,...} these. Nothing: small numbers of either sign.
//   lists     (in {=} and attributes) expressions, rep(e,x) e times x, dims(S), perm(S) a
// permutation of S's axes,
//             axes(S) some of S's axes, negative or not, uaxes(S) the same from 0 on
//   e         + - * / and numbers, letters, u(a,b) drawn, ax(P,Q) the axis between the lists P and
// Q, negative
//             or not; r(S) the rank, size(S) the elements, any(S) an axis of S, end(S) an axis from
//             0 to S's rank, to(i) a type that output i may have
//   attrs     name=list, name='text' or name='this|that'; `?name=` half the time; out=e: as many
// outputs.
//             VARIABLE@type,type: only these types for a type variable (or an input's name)
#ifndef ASSAY_TESTS_OPS_OP_RANDOM_H_
#define ASSAY_TESTS_OPS_OP_RANDOM_H_

#include <ctype.h>

#include "ops/op_case.h"

enum { RANDOM_IN = 24, RANDOM_OUT = 12, RANDOM_ATTRS = 16, RANDOM_LIST = 256 };

typedef struct random_list {
  int n;
  int64_t v[RANDOM_LIST];
} random_list_t;

typedef struct random_case {
  const assay_schema_t* schema;
  uint64_t state;
  const char* text;   // being read
  int64_t max;        // that a letter is
  bool fine;          // numbers have all bits of their type; else few, so that sums are exact
  bool special;       // some are zeros of both signs, infinities, NaN, very large and very small
  assay_type_t type;  // of inputs that may have it; UNDEFINED: drawn
  // Letters.
  bool has[26], has_list[26];
  int64_t number[26];
  random_list_t list[26];
  int8_t coin[10];
  struct {
    const char* variable;
    assay_type_t type;
  } bound[RANDOM_IN];
  size_t n_bound;
  // What came out.
  size_t n_in, n_out, n_attrs;
  assay_tensor_t* in[RANDOM_IN];
  bool wanted[RANDOM_OUT];
  char attr_name[RANDOM_ATTRS][40], attr_value[RANDOM_ATTRS][320];
} random_case_t;

// ---- numbers -----------------------------------------------------------------------------------

static inline uint64_t random_next(random_case_t* c) {  // splitmix64
  uint64_t z = c->state += UINT64_C(0x9e3779b97f4a7c15);
  z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
  z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
  return z ^ z >> 31;
}

static inline int64_t random_int(random_case_t* c, int64_t low, int64_t high) {
  return high <= low ? low : low + (int64_t)(random_next(c) % (uint64_t)(high - low + 1));
}

static inline bool random_chance(random_case_t* c, int in) {
  return random_next(c) % (uint64_t)in == 0;
}

static inline int64_t random_letter(random_case_t* c, char letter) {
  int i = letter - 'a';
  if (!c->has[i]) {
    c->has[i] = true;
    c->number[i] = letter >= 'n' && random_chance(c, 10) ? 0 : random_int(c, 1, c->max);
  }
  return c->number[i];
}

static inline random_list_t* random_sizes(random_case_t* c, char letter) {
  int i = letter - 'A';
  if (!c->has_list[i]) {
    c->has_list[i] = true;
    c->list[i].n = (int)random_int(c, 0, 3);
    for (int k = 0; k < c->list[i].n; k++)
      c->list[i].v[k] = random_chance(c, 20) ? 0 : random_int(c, 1, 4);
  }
  return &c->list[i];
}

// ---- reading the line --------------------------------------------------------------------------

static inline char random_peek(random_case_t* c) {
  while (*c->text == ' ') c->text++;
  return *c->text;
}

static inline bool random_take(random_case_t* c, const char* word) {
  random_peek(c);
  size_t n = strlen(word);
  if (strncmp(c->text, word, n) != 0) return false;
  c->text += n;
  return true;
}

static inline void random_want(random_case_t* c, const char* word) {
  if (!random_take(c, word)) fail_msg("%s: '%s' expected at '%s'", c->schema->name, word, c->text);
}

static inline int64_t random_expr(random_case_t* c);

static inline random_list_t* random_list_letter(random_case_t* c) {
  char letter = random_peek(c);
  if (!isupper((unsigned char)letter))
    fail_msg("%s: a list expected at '%s'", c->schema->name, c->text);
  c->text++;
  return random_sizes(c, letter);
}

static inline int64_t random_out_type(random_case_t* c, size_t output) {
  const assay_param_t* p = assay_schema_output(c->schema, output);
  int types[ASSAY_TYPE_COUNT], n = 0;
  for (int t = 1; t < ASSAY_TYPE_COUNT; t++)
    if (p->types.tensor >> t & 1) types[n++] = t;
  assert_true(n > 0);
  return types[random_int(c, 0, n - 1)];
}

static inline int64_t random_either_sign(random_case_t* c, int64_t axis, int64_t rank) {
  return random_chance(c, 2) ? axis - rank : axis;
}

static inline int64_t random_atom(random_case_t* c) {
  char ch = random_peek(c);
  int64_t x;
  if (ch == '-') return c->text++, -random_atom(c);
  if (isdigit((unsigned char)ch)) {
    char* end;
    x = strtoll(c->text, &end, 10);
    c->text = end;
    return x;
  }
  if (random_take(c, "(")) {
    x = random_expr(c);
  } else if (random_take(c, "u(")) {
    int64_t low = random_expr(c);
    random_want(c, ",");
    x = random_int(c, low, random_expr(c));
  } else if (random_take(c, "ax(")) {
    int64_t before = random_list_letter(c)->n;
    random_want(c, ",");
    x = random_either_sign(c, before, before + 1 + random_list_letter(c)->n);
  } else if (random_take(c, "any(")) {
    int64_t rank = random_list_letter(c)->n;
    x = random_either_sign(c, random_int(c, 0, rank - 1), rank);
  } else if (random_take(c, "end(")) {
    x = random_int(c, 0, random_list_letter(c)->n);
  } else if (random_take(c, "to(")) {
    x = random_out_type(c, (size_t)random_expr(c));
  } else if (random_take(c, "size(")) {
    const random_list_t* l = random_list_letter(c);
    x = 1;
    for (int i = 0; i < l->n; i++) x *= l->v[i];
  } else if (random_take(c, "r(")) {
    x = random_list_letter(c)->n;
  } else {
    if (!islower((unsigned char)ch))
      fail_msg("%s: a number expected at '%s'", c->schema->name, c->text);
    c->text++;
    return random_letter(c, ch);
  }
  random_want(c, ")");
  return x;
}

static inline int64_t random_product(random_case_t* c) {
  int64_t x = random_atom(c);
  for (;;) {
    if (random_take(c, "*")) {
      x *= random_atom(c);
    } else if (random_take(c, "/")) {
      x /= random_atom(c);
    } else {
      return x;
    }
  }
}

static inline int64_t random_expr(random_case_t* c) {
  int64_t x = random_product(c);
  for (;;) {
    if (random_take(c, "+")) {
      x += random_product(c);
    } else if (random_peek(c) == '-') {
      c->text++;
      x -= random_product(c);
    } else {
      return x;
    }
  }
}

static inline void random_push(random_list_t* l, int64_t x) {
  assert_true(l->n < RANDOM_LIST);
  l->v[l->n++] = x;
}

static inline void random_shuffle(random_case_t* c, int n, int64_t* v) {
  for (int i = 0; i < n; i++) v[i] = i;
  for (int i = n - 1; i > 0; i--) {
    int k = (int)random_int(c, 0, i);
    int64_t t = v[i];
    v[i] = v[k];
    v[k] = t;
  }
}

static inline void random_axes(random_case_t* c, int rank, bool sign, bool all,
                               random_list_t* out) {
  int64_t order[RANDOM_LIST];
  random_shuffle(c, rank, order);
  for (int i = 0; i < rank; i++)
    if (all)
      random_push(out, order[i]);
    else if (random_chance(c, 2))
      random_push(out, sign ? random_either_sign(c, order[i], rank) : order[i]);
}

static inline void random_elements(random_case_t* c, random_list_t* out) {
  do {
    if (random_take(c, "rep(")) {
      int64_t n = random_expr(c);
      random_want(c, ",");
      const char *start = c->text, *end = start;
      if (n == 0) {  // nothing to evaluate: to the closing parenthesis
        for (int depth = 1; depth; c->text++)
          depth += *c->text == '(' ? 1 : *c->text == ')' ? -1 : 0;
        continue;
      }
      for (int64_t i = 0; i < n; i++) {
        c->text = start;
        random_push(out, random_expr(c));
        end = c->text;
      }
      c->text = end;
      random_want(c, ")");
    } else if (random_take(c, "dims(")) {
      const random_list_t* l = random_list_letter(c);
      for (int i = 0; i < l->n; i++) random_push(out, l->v[i]);
      random_want(c, ")");
    } else if (random_take(c, "perm(")) {
      random_axes(c, random_list_letter(c)->n, false, true, out);
      random_want(c, ")");
    } else if (random_take(c, "uaxes(")) {
      random_axes(c, random_list_letter(c)->n, false, false, out);
      random_want(c, ")");
    } else if (random_take(c, "axes(")) {
      random_axes(c, random_list_letter(c)->n, true, false, out);
      random_want(c, ")");
    } else {
      random_push(out, random_expr(c));
    }
  } while (random_take(c, ","));
}

// ---- tensors -----------------------------------------------------------------------------------

static inline void random_fill(random_case_t* c, assay_tensor_t* t, bool ranged, int64_t low,
                               int64_t high) {
  static const char* const words[] = {"", "a", "ab", "b c", "a,b", "7", "zz"};
  int64_t n = t->store == ASSAY_STORE_C128 ? 2 * t->size : t->size;
  for (int64_t i = 0; i < n; i++) {
    if (t->store == ASSAY_STORE_STR) {
      const char* w = words[random_int(c, 0, sizeof words / sizeof *words - 1)];
      op_case_ok(assay_tensor_set_string(t, i, w, strlen(w)));
    } else if (t->store == ASSAY_STORE_I64) {
      int64_t x = ranged ? random_int(c, low, high) : random_int(c, -5, 5);
      if (!ranged && !assay_type_is_signed(t->type) && x < 0) x = -x;
      assay_i64(t)[i] = t->type == ASSAY_TYPE_BOOL ? x & 1 : assay_type_wrap(t->type, x);
    } else {
      double x = ranged ? (double)low + (double)random_int(c, 0, 8 * (high - low)) / 8
                        : (double)random_int(c, -16, 16) / 8;
      const double u = (double)(c->fine ? random_next(c) >> 11 : 0) * 0x1p-53;
      static const double specials[] = {0.0, -0.0, INFINITY, -INFINITY, NAN, 1e38, -1e-40, 1, -1};
      if (c->fine) x = ranged ? (double)low + (double)(high - low) * u : 4 * u - 2;
      if (c->special && !ranged && random_chance(c, 3))
        x = specials[random_int(c, 0, sizeof specials / sizeof *specials - 1)];
      if (t->type == ASSAY_TYPE_FLOAT8E8M0) x = ldexp(1, (int)random_int(c, -2, 2));
      assay_f64(t)[i] = t->store == ASSAY_STORE_F64 ? assay_format_round(assay_type_format(t->type),
                                                                         x, ASSAY_OVERFLOW_SATURATE)
                                                    : x;
    }
  }
}

// The type of an input: as its variable is bound, else one that it may have. `only`: a mask.
static inline assay_type_t random_type(random_case_t* c, const assay_param_t* p, uint32_t only) {
  const char* variable = *p->type ? p->type : p->name;
  bool binds = !p->is_variadic || p->is_homogeneous;
  for (size_t i = 0; binds && i < c->n_bound; i++)
    if (strcmp(c->bound[i].variable, variable) == 0) return c->bound[i].type;
  uint32_t mask = p->types.tensor | p->types.seq | p->types.optional | p->types.optional_seq;
  if (only & mask) mask &= only;
  if (c->type && mask >> c->type & 1) mask = UINT32_C(1) << c->type;
  int types[ASSAY_TYPE_COUNT], n = 0;
  for (int t = 1; t < ASSAY_TYPE_COUNT; t++)
    if (mask >> t & 1) types[n++] = t;
  assay_type_t type = n ? (assay_type_t)types[random_int(c, 0, n - 1)] : ASSAY_TYPE_FLOAT;
  assert_true(c->n_bound < RANDOM_IN);
  if (binds) {
    c->bound[c->n_bound].variable = variable;
    c->bound[c->n_bound++].type = type;
  }
  return type;
}

// The mask that the line gives for a variable: "T@float,double".
static inline uint32_t random_only(const char* line, const assay_param_t* p) {
  char key[48];
  uint32_t mask = 0;
  for (int k = 0; k < 2; k++) {
    if (k == 0 && !*p->type) continue;
    snprintf(key, sizeof key, " %s@", k ? p->name : p->type);
    const char* at = strstr(line, key);
    if (!at) continue;
    at += strlen(key);
    while (*at && *at != ' ') {
      char name[32];
      size_t n = strcspn(at, ", ");
      snprintf(name, sizeof name, "%.*s", (int)n, at);
      assay_type_t t = assay_type_parse(name);
      if (!t) fail_msg("unknown type '%s' in '%s'", name, line);
      mask |= UINT32_C(1) << t;
      at += n + (at[n] == ',');
    }
    return mask;
  }
  return UINT32_MAX;
}

static inline void random_shape(random_case_t* c, random_list_t* dims, int* out_marked) {
  *out_marked = -1;
  random_want(c, "[");
  for (bool first = true; !random_take(c, "]"); first = false) {
    if (!first) random_want(c, ",");
    char ch = random_peek(c);
    bool drop = ch == '~', ones = drop || ch == '^';
    if (ones) c->text++;
    if (ch == '#') {
      c->text++;
      *out_marked = dims->n;
      random_push(dims, 0);
    } else if (ones || isupper((unsigned char)ch)) {
      const random_list_t* l = random_list_letter(c);
      int from = drop && random_chance(c, 3) ? (int)random_int(c, 0, l->n) : 0;
      for (int i = from; i < l->n; i++)
        random_push(dims, ones && random_chance(c, 3) ? 1 : l->v[i]);
    } else {
      random_push(dims, random_expr(c));
    }
  }
}

// One tensor with its elements.
static inline assay_tensor_t* random_tensor(random_case_t* c, assay_type_t type) {
  random_list_t dims = {0}, elements = {0};
  int marked;
  bool exact = false, ranged = false;
  int64_t low = 0, high = 0;
  random_shape(c, &dims, &marked);
  if (random_take(c, "{=")) {
    exact = true;
    if (random_peek(c) != '}') random_elements(c, &elements);
    random_want(c, "}");
  } else if (random_take(c, "{")) {
    ranged = true;
    low = random_expr(c);
    random_want(c, "..");
    high = random_expr(c);
    random_want(c, "}");
  }
  if (marked >= 0) dims.v[marked] = elements.n;
  assay_tensor_t* t = NULL;
  op_case_ok(assay_tensor_create_zero(type, dims.n, dims.v, &t));
  random_fill(c, t, ranged, low, high);
  if (!exact) return t;
  if (t->size != elements.n)
    fail_msg("%s: %d elements for shape %s", c->schema->name, elements.n, ASSAY_DIMS_TEXT(t));
  for (int64_t i = 0; i < t->size; i++)
    if (t->store == ASSAY_STORE_I64)
      assay_i64(t)[i] = assay_type_wrap(type, elements.v[i]);
    else if (t->store == ASSAY_STORE_F64)
      assay_f64(t)[i] = (double)elements.v[i];
  return t;
}

static inline void random_input(random_case_t* c, const char* line) {
  char ch = random_peek(c);
  bool optional = ch == '?', there = true;
  if (optional) {
    c->text++;
    int group = isdigit((unsigned char)*c->text) ? *c->text++ - '0' : 0;
    int8_t coin = random_chance(c, 2) ? 1 : -1;
    if (group && !c->coin[group]) c->coin[group] = coin;
    there = (group ? c->coin[group] : coin) > 0;
  }
  if (random_take(c, "_")) {
    c->n_in++;
    return;
  }
  int64_t times = random_take(c, "*") ? random_expr(c) : 1;
  const char* start = c->text;
  if (times == 0) c->text += strcspn(c->text, ";|");
  // What is left out still draws its letters, for those behind it.
  for (int64_t k = 0; k < times; k++) {
    c->text = start;
    assert_true(c->n_in < RANDOM_IN);
    const assay_param_t* p = assay_schema_input(c->schema, c->n_in);
    if (!p) fail_msg("%s-%d has no input %zu", c->schema->name, c->schema->since, c->n_in);
    assay_type_t type = random_type(c, p, random_only(line, p));
    if (random_take(c, ":")) {
      char name[32];
      size_t n = strspn(c->text, "abcdefghijklmnopqrstuvwxyz0123456789");
      snprintf(name, sizeof name, "%.*s", (int)n, c->text);
      c->text += n;
      type = assay_type_parse(name);
    }
    bool full = random_take(c, "box"), boxed = full || random_take(c, "opt"),
         sequence = random_take(c, "seq(");
    assay_tensor_t *t = NULL, *items[8] = {NULL};
    if (sequence) {
      int64_t n = random_expr(c);
      random_want(c, ")");
      const char* item = c->text;
      for (int64_t i = 0; i < n || i == 0; i++) {
        c->text = item;
        items[i] = random_tensor(c, type);
      }
      op_case_ok(assay_sequence_create(type, n, items, &t));
      for (int64_t i = 0; i < 8; i++) assay_tensor_release(items[i]);
    } else {
      t = random_tensor(c, type);
    }
    if (boxed) {
      assay_tensor_t* box = NULL;
      op_case_ok(assay_optional_create(type, !full && random_chance(c, 4) ? NULL : t, &box));
      assay_tensor_release(t);
      t = box;
    }
    if (!there) {
      assay_tensor_release(t);
      t = NULL;
    }
    c->in[c->n_in++] = t;
  }
}

// ---- attributes and outputs --------------------------------------------------------------------

static inline void random_attr_text(random_case_t* c, char* out, size_t capacity) {
  const char* end = strchr(++c->text, '\'');
  assert_non_null(end);
  int choices = 1;
  for (const char* p = c->text; p < end; p++) choices += *p == '|';
  for (int64_t skip = random_int(c, 0, choices - 1); skip; skip--)
    c->text = strchr(c->text, '|') + 1;
  size_t n = strcspn(c->text, "|'");
  snprintf(out, capacity, "%.*s", (int)n, c->text);
  c->text = end + 1;
}

static inline void random_attr(random_case_t* c) {
  bool optional = random_take(c, "?"), there = !optional || random_chance(c, 2);
  char name[40];
  size_t n = strcspn(c->text, "=@ ");
  snprintf(name, sizeof name, "%.*s", (int)n, c->text);
  c->text += n;
  if (*c->text == '@') {  // types: read elsewhere
    c->text += strcspn(c->text, " ");
    return;
  }
  random_want(c, "=");
  if (strcmp(name, "out") == 0) {
    int64_t outputs = random_expr(c);
    assert_true(outputs <= RANDOM_OUT);
    c->n_out = (size_t)outputs;
    return;
  }
  // Attributes came with versions.
  const assay_attr_spec_t* spec = assay_schema_attr(c->schema, name);
  char value[320] = "";
  if (random_peek(c) == '\'') {
    random_attr_text(c, value, sizeof value);
  } else {
    random_list_t l = {0};
    random_elements(c, &l);
    size_t used = 0;
    // Floats are eighths.
    bool real = spec && (spec->type == ASSAY_ATTR_FLOAT || spec->type == ASSAY_ATTR_FLOATS);
    for (int i = 0; i < l.n && used < sizeof value; i++)
      used += (size_t)snprintf(value + used, sizeof value - used, real ? "%s%.3f" : "%s%.0f",
                               i ? "," : "", real ? (double)l.v[i] / 8 : (double)l.v[i]);
  }
  if (!there || !spec) return;
  assert_true(c->n_attrs < RANDOM_ATTRS);
  strcpy(c->attr_name[c->n_attrs], name);
  strcpy(c->attr_value[c->n_attrs++], value);
}

static inline void random_outputs(random_case_t* c) {
  size_t max = (size_t)c->schema->n_outputs;
  if (c->n_out == 0) c->n_out = max;
  for (size_t i = 0; i < c->n_out; i++) {
    const assay_param_t* p = assay_schema_output(c->schema, i);
    c->wanted[i] = p && (!p->is_optional || random_chance(c, 2));
  }
  while (c->n_out > 1 && !c->wanted[c->n_out - 1]) c->n_out--;
  if (c->n_out == 1) c->wanted[0] = true;
}

// Without a line: all inputs of one shape; variadic ones broadcast.
static inline const char* random_default_line(const assay_schema_t* s, char* buffer,
                                              size_t capacity) {
  size_t used = 0;
  buffer[0] = 0;
  for (int i = 0; i < s->n_inputs; i++) {
    const assay_param_t* p = &s->inputs[i];
    bool sequence = !p->types.tensor && p->types.seq;
    int n =
        snprintf(buffer + used, capacity - used, "%s%s%s", i ? "; " : "", p->is_optional ? "?" : "",
                 p->is_variadic ? "*u(1,3) [~S]"
                 : sequence     ? "seq(u(0,3)) [S]"
                                : "[S]");
    used += (size_t)n;
  }
  return buffer;
}

// c: as its first members say.
static inline void random_make_of(random_case_t* c, const char* line) {
  char buffer[512], padded[1024];
  const assay_schema_t* s = c->schema;
  if (!line) line = random_default_line(s, buffer, sizeof buffer);
  snprintf(padded, sizeof padded, "%s ", line);
  c->text = padded;
  if (random_peek(c) != '|' && *c->text) do
      random_input(c, padded);
    while (random_take(c, ";"));
  if (random_take(c, "|"))
    while (random_peek(c)) random_attr(c);
  if (random_peek(c)) fail_msg("%s: what is '%s'?", s->name, c->text);
  while (c->n_in && !c->in[c->n_in - 1]) c->n_in--;
  random_outputs(c);
}

static inline void random_make(random_case_t* c, const assay_schema_t* s, const char* line,
                               uint64_t seed) {
  *c = (random_case_t){.schema = s, .state = seed, .max = 4};
  random_make_of(c, line);
}

static inline void random_deinit(random_case_t* c) {
  for (size_t i = 0; i < c->n_in; i++) assay_tensor_release(c->in[i]);
}

#endif  // ASSAY_TESTS_OPS_OP_RANDOM_H_
