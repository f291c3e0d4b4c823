// Patterns: what a piece of a graph looks like, as text.
#include "passes/assemble/pattern.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"

enum { MAX_TERMS = 192, MAX_ARGS = 6, MAX_ATTRS = 2, MAX_DEPTH = 64, WORD = 32 };

typedef enum kind { VALUE, NUMBER_NAME, CONSTANT, NUMBER, NODE, EITHER } kind_t;

typedef struct condition {
  char name[WORD];
  double number;
  bool about;
} condition_t;

typedef struct term {
  kind_t kind;
  char op[WORD];       // of NODE
  int name;            // -1: none
  int args[MAX_ARGS];  // of NODE and EITHER: terms
  int n_args;
  bool more, optional;  // Op(a, ...), Op?(a)
  condition_t attrs[MAX_ATTRS];
  int n_attrs;
  double number;
  bool about;  // ~
} term_t;

struct assay_pattern {
  term_t terms[MAX_TERMS];
  int n_terms, root;
  char names[ASSAY_MATCH_NAMES][WORD];
  int n_names;
};

// ---- forms -------------------------------------------------------------------------------------

// Alternatives; parameters are a, b and n, which stands for a number. `/n` is one over it.
typedef struct form {
  const char* name;
  const char* params;
  const char* ways[MAX_ARGS];
} form_t;

static const form_t forms[] = {
    {"Square", "a", {"Pow(a, 2)", "Mul(a, a)"}},
    {"Cube", "a", {"Pow(a, 3)", "Mul(a, Square(a))"}},
    {"Times", "an", {"Mul(a, n)", "Div(a, /n)"}},
    {"Product", "abn", {"Times(Mul(a, b), n)", "Mul(Times(a, n), b)", "Mul(a, Times(b, n))"}},
    {"TimesSquare", "an", {"Times(Square(a), n)", "Mul(Times(a, n), a)"}},
    {"TimesCube",
     "an",
     {"Times(Cube(a), n)", "Mul(TimesSquare(a, n), a)", "Mul(Square(a), Times(a, n))"}},
    {"Expm1", "a", {"Sub(Exp(a), 1)", "Add(Exp(a), -1)"}},
    // 1 / sqrt(b), a / sqrt(b)
    {"InverseRoot",
     "b",
     {"Reciprocal(Sqrt(b))", "Div(1, Sqrt(b))", "Pow(b, -0.5)", "Sqrt(Reciprocal(b))"}},
    {"OverRoot", "ab", {"Div(a, Sqrt(b))", "Mul(a, InverseRoot(b))", "Div(a, Pow(b, 0.5))"}},
    // sqrt(2 / pi) (a + 0.044715 a^3)
    {"GeluCurve",
     "a",
     {"Times(Add(a, TimesCube(a, ~0.044715)), ~0.79788456080286536)",
      "Product(a, Add(TimesSquare(a, ~0.044715), 1), ~0.79788456080286536)",
      "Mul(a, Add(TimesSquare(a, ~0.035677408136300125), ~0.79788456080286536))",
      "Add(Times(a, ~0.79788456080286536), TimesCube(a, ~0.035677408136300125))"}},
};

// ---- reading -----------------------------------------------------------------------------------

typedef struct reader {
  const char* at;
  assay_pattern_t* p;
  const char* params;  // of the form being read; NULL: none
  const int* values;   // their terms
  int depth;
  bool wrong;
} reader_t;

static int read_term(reader_t* r);

static void skip(reader_t* r) {
  while (*r->at == ' ') r->at++;
}

static bool take(reader_t* r, const char* what) {
  skip(r);
  const size_t n = strlen(what);
  if (strncmp(r->at, what, n) != 0) return false;
  r->at += n;
  return true;
}

static int fail(reader_t* r) {
  r->wrong = true;
  return 0;
}

static void read_word(reader_t* r, char word[WORD]) {
  size_t n = 0;
  skip(r);
  while ((isalnum((unsigned char)*r->at) || *r->at == '_') && n + 1 < WORD) word[n++] = *r->at++;
  word[n] = 0;
  if (!n) r->wrong = true;
}

static double read_number(reader_t* r, bool* about) {
  *about = take(r, "~");
  char* end = NULL;
  skip(r);
  const double x = strtod(r->at, &end);
  if (end == r->at) r->wrong = true;
  r->at = end;
  return x;
}

static int new_term(reader_t* r, kind_t kind) {
  if (r->p->n_terms == MAX_TERMS) return fail(r);
  r->p->terms[r->p->n_terms] = (term_t){.kind = kind, .name = -1};
  return r->p->n_terms++;
}

static int name_index(reader_t* r, const char* word) {
  for (int i = 0; i < r->p->n_names; i++)
    if (strcmp(r->p->names[i], word) == 0) return i;
  if (r->p->n_names == ASSAY_MATCH_NAMES) return fail(r);
  memcpy(r->p->names[r->p->n_names], word, WORD);
  return r->p->n_names++;
}

static int named(reader_t* r, kind_t kind, const char* word) {
  const int t = new_term(r, kind);
  r->p->terms[t].name = name_index(r, word);
  return t;
}

static const form_t* find_form(const char* name) {
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++)
    if (strcmp(forms[i].name, name) == 0) return &forms[i];
  return NULL;
}

// The alternatives of a form with these arguments.
static int expand(reader_t* r, const form_t* f, const int* args, int n_args) {
  if (n_args != (int)strlen(f->params) || r->depth == MAX_DEPTH) return fail(r);
  const int either = new_term(r, EITHER);
  for (int i = 0; i < MAX_ARGS && f->ways[i] && !r->wrong; i++) {
    reader_t inner = {f->ways[i], r->p, f->params, args, r->depth + 1, false};
    const int way = read_term(&inner);
    r->wrong |= inner.wrong || *inner.at;
    term_t* t = &r->p->terms[either];
    t->args[t->n_args++] = way;
  }
  return either;
}

static void read_attrs(reader_t* r, term_t* t) {
  do {
    if (t->n_attrs == MAX_ATTRS) {
      r->wrong = true;
      return;
    }
    condition_t* c = &t->attrs[t->n_attrs++];
    read_word(r, c->name);
    if (!take(r, "=")) r->wrong = true;
    c->number = read_number(r, &c->about);
  } while (!r->wrong && take(r, ","));
  if (!take(r, "]")) r->wrong = true;
}

static int read_node(reader_t* r, const char* op) {
  term_t t = {.kind = NODE, .name = -1};
  memcpy(t.op, op, WORD);
  t.optional = take(r, "?");
  if (take(r, "[")) read_attrs(r, &t);
  if (!take(r, "(")) return fail(r);
  do {
    if (take(r, "...")) {
      t.more = true;
      break;
    }
    if (t.n_args == MAX_ARGS) return fail(r);
    t.args[t.n_args++] = read_term(r);
  } while (!r->wrong && take(r, ","));
  if (!take(r, ")")) return fail(r);
  const form_t* f = find_form(op);
  if (f) return expand(r, f, t.args, t.n_args);
  const int i = new_term(r, NODE);
  if (!r->wrong) r->p->terms[i] = t;
  return i;
}

static int read_value(reader_t* r) {
  char word[WORD];
  read_word(r, word);
  if (isupper((unsigned char)word[0])) return read_node(r, word);
  const char* param = r->params && strlen(word) == 1 ? strchr(r->params, word[0]) : NULL;
  if (param) return r->values[param - r->params];
  if (!take(r, "=")) return named(r, VALUE, word);
  const int name = name_index(r, word), t = read_term(r);
  if (r->p->terms[t].kind != NODE) return fail(r);
  r->p->terms[t].name = name;
  return t;
}

static int read_term(reader_t* r) {
  char word[WORD];
  skip(r);
  const char c = *r->at;
  if (r->wrong || r->depth > MAX_DEPTH) return fail(r);
  if (c == '$' || c == '%') {
    r->at++;
    read_word(r, word);
    return named(r, c == '$' ? NUMBER_NAME : CONSTANT, word);
  }
  if (c == '/') {  // one over a parameter that is a number
    r->at++;
    const int of = read_term(r), t = new_term(r, NUMBER);
    r->p->terms[t] = r->p->terms[of];
    if (r->p->terms[of].kind == NUMBER) r->p->terms[t].number = 1 / r->p->terms[of].number;
    if (r->p->terms[of].kind != NUMBER) return fail(r);
    return t;
  }
  if (c == '~' || c == '-' || isdigit((unsigned char)c)) {
    const int t = new_term(r, NUMBER);
    r->p->terms[t].number = read_number(r, &r->p->terms[t].about);
    return t;
  }
  return read_value(r);
}

assay_status_t assay_pattern_create(const char* text, assay_pattern_t** out) {
  assay_pattern_t* p = NULL;
  ASSAY_TRY(ASSAY_NEW(&p));
  reader_t r = {.at = text, .p = p};
  p->root = read_term(&r);
  skip(&r);
  if (r.wrong || *r.at) {
    assay_free(p);
    return ASSAY_ERROR(ASSAY_INTERNAL, "the pattern '%s' cannot be read at '%s'", text, r.at);
  }
  *out = p;
  return NULL;
}

void assay_pattern_destroy(assay_pattern_t* p) { assay_free(p); }

// ---- numbers -----------------------------------------------------------------------------------

static bool is_number(double x, const assay_value_t* v, double number, bool about) {
  if (!about) return x == number;
  const assay_type_t type = v->constant->type;
  if (type != ASSAY_TYPE_FLOAT && type != ASSAY_TYPE_DOUBLE) return false;
  const double ulp = assay_format_ulp(assay_type_format(type), number);
  return fabs(x - number) <= ulp;
}

static bool fits_number(const term_t* t, const assay_value_t* v) {
  double x;
  return assay_pass_number(v, &x) && is_number(x, v, t->number, t->about);
}

// ---- matching ----------------------------------------------------------------------------------

// What is still to be matched: a list that lies on the stack.
typedef struct goal {
  int term;
  assay_value_t* value;
  const struct goal* next;
} goal_t;

typedef struct search {
  const assay_pattern_t* p;
  const assay_uses_t* uses;
  assay_graph_t* graph;
  bool (*accept)(const assay_match_t* m, void* user);
  void* user;
  assay_match_t m;
  int steps;
} search_t;

enum { MAX_STEPS = 20000 };

static bool solve(search_t* s, const goal_t* goal);

static bool commutes(const assay_node_t* n) {
  static const char* const names[] = {"Add", "Mul", "Max", "Min"};
  for (size_t i = 0; i < sizeof names / sizeof *names; i++)
    if (strcmp(n->op_type, names[i]) == 0) return true;
  return false;
}

// Whether nothing but the root's output is read outside.
static bool is_closed(const search_t* s) {
  for (size_t i = 1; i < s->m.n_nodes; i++) {
    const assay_value_t* v = s->m.nodes[i]->outputs[0];
    int inside = 0;
    for (size_t k = 0; k < s->m.n_nodes; k++)
      for (size_t j = 0; j < s->m.nodes[k]->n_inputs; j++) inside += s->m.nodes[k]->inputs[j] == v;
    if (v->is_output || inside != assay_uses_of(s->uses, v)) return false;
  }
  return true;
}

static bool bind(search_t* s, int name, assay_value_t* v, bool by_number) {
  assay_value_t* old = s->m.named[name];
  double x, y;
  if (!old) {
    s->m.named[name] = v;
    return true;
  }
  return old == v ||
         (by_number && assay_pass_number(old, &x) && assay_pass_number(v, &y) && x == y);
}

static bool attrs_fit(const term_t* t, const assay_node_t* n) {
  for (int i = 0; i < t->n_attrs; i++) {
    const condition_t* c = &t->attrs[i];
    const assay_attr_t* a = assay_node_attr(n, c->name);
    const assay_attr_spec_t* spec = n->schema ? assay_schema_attr(n->schema, c->name) : NULL;
    const bool integer = a ? a->type == ASSAY_ATTR_INT : spec && spec->type == ASSAY_ATTR_INT;
    const double x =
        integer ? (double)assay_attr_i64(n, c->name, INT64_MIN) : assay_attr_f64(n, c->name, NAN);
    const double slack = c->about ? assay_format_ulp(ASSAY_FORMAT_FP32, c->number) : 0;
    if (!(fabs(x - c->number) <= slack)) return false;
  }
  return true;
}

// Clip before opset 11: the limits are attributes.
static bool old_clip_fits(const search_t* s, const term_t* t, const assay_node_t* n) {
  static const char* const names[] = {"min", "max"};
  for (int i = 1; i < t->n_args; i++) {
    const term_t* limit = &s->p->terms[t->args[i]];
    if (limit->kind != NUMBER || !assay_attr_has(n, names[i - 1]) ||
        assay_attr_f64(n, names[i - 1], NAN) != limit->number)
      return false;
  }
  return true;
}

static bool node_fits(const search_t* s, const term_t* t, const assay_node_t* n) {
  if (n->graph != s->graph || *n->domain || !n->op || strcmp(n->op_type, t->op) != 0) return false;
  for (size_t i = 1; i < n->n_outputs; i++)
    if (n->outputs[i]) return false;
  // Opset 6 and before: broadcast by attributes.
  if (n->op->flags & ASSAY_OP_POINTWISE && assay_attr_i64(n, "broadcast", 0)) return false;
  size_t given = n->n_inputs;
  while (given && !n->inputs[given - 1]) given--;
  const bool old_clip =
      strcmp(t->op, "Clip") == 0 && n->schema && n->schema->since < 11 && t->n_args <= 3;
  const size_t wanted = old_clip ? 1 : (size_t)t->n_args;
  if (given < wanted || (given > wanted && !t->more)) return false;
  for (size_t i = 0; i < wanted; i++)
    if (!n->inputs[i]) return false;
  return (!old_clip || old_clip_fits(s, t, n)) && attrs_fit(t, n);
}

static bool solve_args(search_t* s, const term_t* t, assay_node_t* n, bool swapped,
                       const goal_t* next) {
  goal_t goals[MAX_ARGS];
  int count = t->n_args;
  if (count > (int)n->n_inputs) count = (int)n->n_inputs;  // Clip's limits are attributes
  for (int i = count - 1; i >= 0; i--) {
    goals[i] =
        (goal_t){t->args[i], n->inputs[swapped ? 1 - i : i], i + 1 < count ? &goals[i + 1] : next};
  }
  return solve(s, count ? &goals[0] : next);
}

static bool solve_node(search_t* s, const term_t* t, const goal_t* goal) {
  assay_node_t* n = goal->value->producer;
  if (!n || goal->value->output_index || goal->value->constant || !node_fits(s, t, n)) return false;
  const size_t count = s->m.n_nodes;
  bool known = false;
  for (size_t i = 0; i < count; i++) known |= s->m.nodes[i] == n;
  if (!known && count == ASSAY_MATCH_NODES) return false;
  if (!known) s->m.nodes[s->m.n_nodes++] = n;
  if (solve_args(s, t, n, false, goal->next)) return true;
  if (t->n_args == 2 && n->n_inputs == 2 && commutes(n) && solve_args(s, t, n, true, goal->next))
    return true;
  s->m.n_nodes = count;
  return false;
}

// A term that may have a name, which stands for the value then.
static bool solve_named(search_t* s, const term_t* t, const goal_t* goal) {
  assay_value_t* old = t->name < 0 ? NULL : s->m.named[t->name];
  if (t->name >= 0 && !bind(s, t->name, goal->value, t->kind == NUMBER_NAME)) return false;
  if (t->kind == NODE ? solve_node(s, t, goal) : solve(s, goal->next)) return true;
  if (t->name >= 0) s->m.named[t->name] = old;
  return false;
}

static bool solve(search_t* s, const goal_t* goal) {
  if (!goal) return is_closed(s) && (!s->accept || s->accept(&s->m, s->user));
  if (!goal->value || ++s->steps > MAX_STEPS) return false;
  const term_t* t = &s->p->terms[goal->term];
  double x;
  switch (t->kind) {
    case NUMBER:
      return fits_number(t, goal->value) && solve(s, goal->next);
    case NUMBER_NAME:
      return assay_pass_number(goal->value, &x) && solve_named(s, t, goal);
    case CONSTANT:
      return assay_pass_constant(goal->value) && solve_named(s, t, goal);
    case VALUE:
      return solve_named(s, t, goal);
    case EITHER:
      for (int i = 0; i < t->n_args; i++) {
        const goal_t way = {t->args[i], goal->value, goal->next};
        if (solve(s, &way)) return true;
      }
      return false;
    case NODE:
      if (solve_named(s, t, goal)) return true;
      if (t->optional) {
        const goal_t inner = {t->args[0], goal->value, goal->next};
        return solve(s, &inner);
      }
      return false;
  }
  return false;
}

bool assay_pattern_match(const assay_pattern_t* p, const assay_uses_t* uses, assay_node_t* root,
                         bool (*accept)(const assay_match_t* m, void* user), void* user,
                         assay_match_t* out) {
  if (!root->n_outputs || !root->outputs[0]) return false;
  search_t s = {.p = p, .uses = uses, .graph = root->graph, .accept = accept, .user = user};
  s.m.pattern = p;
  const goal_t goal = {p->root, root->outputs[0], NULL};
  if (!solve(&s, &goal) || !s.m.n_nodes || s.m.nodes[0] != root) return false;
  *out = s.m;
  return true;
}

assay_value_t* assay_match_value(const assay_match_t* m, const char* name) {
  for (int i = 0; i < m->pattern->n_names; i++)
    if (strcmp(m->pattern->names[i], name) == 0) return m->named[i];
  return NULL;
}

bool assay_match_number(const assay_match_t* m, const char* name, double* out) {
  const assay_value_t* v = assay_match_value(m, name);
  return v && assay_pass_number(v, out);
}
