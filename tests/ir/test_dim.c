// Symbolic dimensions: a table of what simplifies to what, and random expressions against plain
// integer arithmetic.
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// cmocka needs the four above before it
#include <cmocka.h>

#include "ir/dim.h"
#include "seed_case.h"

static const assay_dim_t* parse(assay_dims_t* p, const char* text);

// ---- a parser for the tables ------------------------------------------------------------------
// + - * and / (floor), % (mod), min(a, b), max(a, b), broadcast(a, b), ceil(a, b), names, numbers.

static const assay_dim_t* parse_sum(assay_dims_t* p, const char** s);

static void spaces(const char** s) {
  while (**s == ' ') ++*s;
}

static bool accept(const char** s, char c) {
  spaces(s);
  if (**s != c) return false;
  ++*s;
  return true;
}

static const assay_dim_t* parse_atom(assay_dims_t* p, const char** s) {
  spaces(s);
  if (accept(s, '(')) {
    const assay_dim_t* d = parse_sum(p, s);
    assert_true(accept(s, ')'));
    return d;
  }
  if (accept(s, '-')) return assay_dim_mul_i(p, parse_atom(p, s), -1);
  if (isdigit((unsigned char)**s)) {
    char* end;
    int64_t x = strtoll(*s, &end, 10);
    *s = end;
    return assay_dim_const(p, x);
  }
  char name[32] = "";
  size_t n = 0;
  while (isalnum((unsigned char)**s) && n + 1 < sizeof name) name[n++] = *(*s)++;
  assert_true(n > 0);
  if (!accept(s, '(')) return assay_dim_symbol(p, name);
  const assay_dim_t* a = parse_sum(p, s);
  while (accept(s, ',')) {
    const assay_dim_t* b = parse_sum(p, s);
    if (strcmp(name, "min") == 0)
      a = assay_dim_min(p, a, b);
    else if (strcmp(name, "max") == 0)
      a = assay_dim_max(p, a, b);
    else if (strcmp(name, "broadcast") == 0)
      a = assay_dim_broadcast(p, a, b);
    else
      a = assay_dim_ceildiv(p, a, b);
  }
  assert_true(accept(s, ')'));
  return a;
}

static const assay_dim_t* parse_product(assay_dims_t* p, const char** s) {
  const assay_dim_t* a = parse_atom(p, s);
  for (;;) {
    if (accept(s, '*'))
      a = assay_dim_mul(p, a, parse_atom(p, s));
    else if (accept(s, '/'))
      a = assay_dim_floordiv(p, a, parse_atom(p, s));
    else if (accept(s, '%'))
      a = assay_dim_mod(p, a, parse_atom(p, s));
    else
      return a;
  }
}

static const assay_dim_t* parse_sum(assay_dims_t* p, const char** s) {
  const assay_dim_t* a = parse_product(p, s);
  for (;;) {
    if (accept(s, '+'))
      a = assay_dim_add(p, a, parse_product(p, s));
    else if (accept(s, '-'))
      a = assay_dim_sub(p, a, parse_product(p, s));
    else
      return a;
  }
}

static const assay_dim_t* parse(assay_dims_t* p, const char* text) {
  const assay_dim_t* d = parse_sum(p, &text);
  spaces(&text);
  assert_int_equal(*text, 0);
  return d;
}

static assay_dims_t* make_pool(void) {
  assay_dims_t* p = NULL;
  assert_null(assay_dims_create(&p));
  // The order of names that texts are in.
  for (const char* name = "NCHWMK"; *name; name++)
    assert_non_null(assay_dim_symbol(p, (char[2]){*name, 0}));
  return p;
}

// ---- what becomes of what ---------------------------------------------------------------------

static const struct {
  const char *from, *text;
} forms[] = {
    {"0", "0"},
    {"-7", "-7"},
    {"N", "N"},
    {"N*2*3", "6*N"},
    {"(N+1)-1", "N"},
    {"N-N", "0"},
    {"M+N+1", "N + M + 1"},
    {"C*N", "N*C"},
    {"-N + 3", "-N + 3"},
    {"(N+1)*(N-1)", "N*N - 1"},
    {"(N+M)*(N+M) - N*N - M*M", "2*N*M"},
    // division by a number
    {"(6*N)/3", "2*N"},
    {"(N*4+2)/2", "2*N + 1"},
    {"(N*2)/2", "N"},
    {"(4*N+2)/8", "floor(N/2)"},
    {"(4*N+6)/8", "floor((N + 1)/2)"},
    {"(H-1)/2 + 1", "floor((H + 1)/2)"},
    {"N/1", "N"},
    {"N/-1", "-N"},
    {"N/0", "?"},
    {"N%0", "?"},
    {"0/N", "0"},
    {"7/2", "3"},
    {"-7/2", "-4"},
    {"7/-2", "-4"},
    {"-7/-2", "3"},
    {"7%-2", "-1"},
    {"-7%2", "1"},
    {"ceil(7, 2)", "4"},
    {"ceil(-7, 2)", "-3"},
    {"(N/2)/3", "floor(N/6)"},
    {"((N+1)/2 + 1)/2", "floor((N + 3)/4)"},
    {"(3*N)/2", "N + floor(N/2)"},
    {"(N/-2)", "-floor((N + 1)/2)"},
    {"-(-N/2)", "floor((N + 1)/2)"},
    {"ceil(N, 2)", "floor((N + 1)/2)"},
    {"ceil(4*N, 2)", "2*N"},
    {"ceil(N, -2)", "-floor(N/2)"},
    {"(2*N + M)/2", "N + floor(M/2)"},
    {"(2*N - M)/2", "N - floor((M + 1)/2)"},
    {"5/7 + N*0", "0"},
    {"min(N, 3)/4", "0"},
    // division by an expression
    {"N/N", "1"},
    {"(6*N*M)/(3*N)", "2*M"},
    {"(N*C*H*W)/(N*C)", "H*W"},
    {"((N+1)*C*H)/((N+1)*C)", "H"},
    {"(N*N - 1)/(N + 1)", "N - 1"},
    {"(M + N - 1)/M", "floor((N - 1)/M) + 1"},
    {"ceil(N, M)", "floor((N - 1)/M) + 1"},
    {"ceil(N*M, M)", "N"},
    {"ceil(N, -M)", "-floor(N/M)"},
    {"(N*M)/(2*M)", "floor(N/2)"},
    {"N/(N+1)", "0"},
    {"(N/M)/K", "floor(N/(M*K))"},
    {"(N+1)/(M+1)", "floor((N + 1)/(M + 1))"},
    {"N/-M", "floor(-N/M)"},
    {"(N/2)/M", "floor(N/(2*M))"},
    {"N/(2*M)", "floor(N/(2*M))"},
    // mod
    {"(6*N) % 3", "0"},
    {"(6*N + 4) % 3", "1"},
    {"(N*M) % N", "0"},
    {"N % 8", "N - 8*floor(N/8)"},
    {"N % 8 + 8*(N/8)", "N"},
    {"N % (N+1)", "N"},
    // min and max
    {"min(3, 5)", "3"},
    {"max(3, 5)", "5"},
    {"min(N, N)", "N"},
    {"max(N, 0)", "N"},
    {"max(0, N)", "N"},
    {"max(N, N + 1)", "N + 1"},
    {"min(N, N + 1)", "N"},
    {"min(N, 5)", "min(N, 5)"},
    {"min(5, N)", "min(N, 5)"},
    {"min(N, min(M, 5))", "min(N, M, 5)"},
    {"min(min(N, 7), min(M, 5))", "min(N, M, 5)"},
    {"max(N - 3, 0)", "max(N - 3, 0)"},
    {"max(N - 3, -N)", "max(N - 3, -N)"},
    {"max(N, min(N, M))", "N"},
    {"min(N, max(N, M))", "N"},
    {"min(N, 9223372036854775807)", "N"},
    {"max(N - 4, -9223372036854775807 - 1)", "N - 4"},
    {"max(N - min(2, N), 0)", "N - min(N, 2)"},
    {"max(N - N/2, 0)", "N - floor(N/2)"},
    {"max(N*M, N)", "max(N*M, N)"},
    {"broadcast(N, N)", "N"},
    {"broadcast(1, N)", "N"},
    {"broadcast(1, 1)", "1"},
    {"broadcast(N, 5)", "5"},
    {"broadcast(N, 0)", "0"},
    {"broadcast(5, 7)", "?"},
    {"broadcast(N, M)", "broadcast(N, M)"},
    {"broadcast(M, N)", "broadcast(N, M)"},
    {"broadcast(broadcast(M, N), N)", "broadcast(N, M)"},
    {"broadcast(broadcast(M, N), broadcast(K, M))", "broadcast(N, M, K)"},
    {"broadcast(M, broadcast(N, 4))", "4"},
    {"broadcast(broadcast(N, 2 * broadcast(N, M)), K)", "broadcast(N, K, 2*broadcast(N, M))"},
    // What is made of a broadcast as one of its sizes is made of another adds nothing to it.
    {"broadcast(broadcast(N, 2 * N - 1), 2 * broadcast(N, 2 * N - 1) - 1)",
     "broadcast(2*N - 1, N)"},
    {"broadcast(2 * broadcast(N, 2 * N - 1) - 1, broadcast(N, 2 * N - 1))",
     "broadcast(2*N - 1, N)"},
    {"broadcast(broadcast(N, 2 * N - 1), 2 * broadcast(N, 2 * N - 1))",
     "broadcast(2*N - 1, N, 2*broadcast(2*N - 1, N))"},
    {"min(N/2, N)", "floor(N/2)"},
    {"max((N+1)/2, N/2)", "floor((N + 1)/2)"},
    {"max(min(max(N, 0), 5), 0)", "min(N, 5)"},
    {"2*min(N, 3) - min(3, N)", "min(N, 3)"},
    // overflow
    {"9223372036854775807 + 1", "?"},
    {"9223372036854775807 * N * 2", "?"},
    {"(-9223372036854775807 - 1) / -1", "?"},
    {"(-9223372036854775807 - 1) / 3", "-3074457345618258603"},
    {"(-9223372036854775807 - 1) % 3", "1"},
    {"((-9223372036854775807 - 1) * N) / 3", "-3074457345618258602*N - floor((2*N + 2)/3)"},
    {"((-9223372036854775807 - 1) * N) / (-1*M)", "?"},
    {"(-9223372036854775807 - 1)", "-9223372036854775808"},
};

static void test_forms(void** state) {
  (void)state;
  assay_dims_t* p = make_pool();
  char text[512];
  int failed = 0;
  for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
    assay_dim_text(parse(p, forms[i].from), text, sizeof text);
    if (strcmp(text, forms[i].text) == 0) continue;
    print_error("%s: found %s, expected %s\n", forms[i].from, text, forms[i].text);
    failed++;
  }
  assert_int_equal(failed, 0);
  assert_null(assay_dims_status(p));
  assay_dims_destroy(p);
}

static const struct {
  const char *a, *b;
  bool same, differ;
} pairs[] = {
    {"N", "N", true, false},         {"N", "M", false, false},
    {"N", "N + 1", false, true},     {"2*N + M", "M + N + N", true, false},
    {"3", "4", false, true},         {"3", "3", true, false},
    {"N + 1", "0", false, true},     {"N", "3", false, false},
    {"N/2", "N/2 + 1", false, true}, {"N", "2*N", false, false},
    {"N", "-N - 1", false, true},    {"N*M", "M*N", true, false},
    {"N/0", "N/0", false, false},    {"N/0", "3", false, false},
    {"min(N, 3)", "4", false, true}, {"N + M", "N + 1", false, false},
};

static void test_pairs(void** state) {
  (void)state;
  assay_dims_t* p = make_pool();
  for (size_t i = 0; i < sizeof pairs / sizeof *pairs; i++) {
    const assay_dim_t *a = parse(p, pairs[i].a), *b = parse(p, pairs[i].b);
    if (assay_dim_same(a, b) != pairs[i].same || assay_dim_differ(a, b) != pairs[i].differ ||
        assay_dim_differ(b, a) != pairs[i].differ)
      fail_msg("%s and %s: same %d, differ %d", pairs[i].a, pairs[i].b, assay_dim_same(a, b),
               assay_dim_differ(a, b));
  }
  assay_dims_destroy(p);
}

static void test_names(void** state) {
  (void)state;
  assay_dims_t* p = make_pool();
  const assay_dim_t* n = assay_dim_symbol(p, "batch size");
  assert_string_equal(assay_dim_name(n), "batch size");
  assert_null(assay_dim_name(assay_dim_add_i(p, n, 1)));
  assert_null(assay_dim_name(NULL));
  assert_null(assay_dim_symbol(p, ""));
  assert_null(assay_dim_symbol(p, NULL));
  assert_ptr_equal(n, assay_dim_symbol(p, "batch size"));
  int64_t x;
  assert_false(assay_dim_value(n, &x));
  assert_false(assay_dim_value(NULL, &x));
  assert_true(assay_dim_value(assay_dim_sub(p, n, n), &x));
  assert_int_equal(x, 0);

  assert_string_equal(assay_dim_name(assay_dim_fresh(p, "k")), "k");
  assert_string_equal(assay_dim_name(assay_dim_fresh(p, "k")), "k_1");
  assert_non_null(assay_dim_symbol(p, "k_2"));
  assert_string_equal(assay_dim_name(assay_dim_fresh(p, "k")), "k_3");
  assert_string_equal(assay_dim_name(assay_dim_fresh(p, "")), "dim");

  // Texts are cut, never written past the end.
  char small[5] = "xxxx";
  assert_string_equal(assay_dim_text(n, small, sizeof small), "batc");
  assert_string_equal(assay_dim_text(n, small, 1), "");
  assay_dims_destroy(p);
}

// ---- values and replacement -------------------------------------------------------------------

enum { N_NAMES = 4 };
static const char* const names[N_NAMES] = {"N", "C", "H", "W"};

static bool lookup(void* user, const char* name, int64_t* out) {
  for (int i = 0; i < N_NAMES; i++) {
    if (strcmp(name, names[i]) != 0) continue;
    *out = ((const int64_t*)user)[i];
    return true;
  }
  return false;
}

static void test_eval(void** state) {
  (void)state;
  assay_dims_t* p = make_pool();
  int64_t at[N_NAMES] = {7, 3, 224, 0}, x;
  assert_true(assay_dim_eval(parse(p, "(N*C + 1)/2 - min(H, 5)"), lookup, at, &x));
  assert_int_equal(x, 6);
  assert_false(assay_dim_eval(parse(p, "N + K"), lookup, at, &x));  // K has no value
  assert_false(assay_dim_eval(parse(p, "N/W"), lookup, at, &x));
  assert_false(assay_dim_eval(NULL, lookup, at, &x));
  assert_true(assay_dim_eval(parse(p, "broadcast(1 + W, N)"), lookup, at, &x));
  assert_int_equal(x, 7);
  assert_false(assay_dim_eval(parse(p, "broadcast(C, N)"), lookup, at, &x));  // 3 and 7
  at[0] = INT64_MAX;
  assert_false(assay_dim_eval(parse(p, "N + 1"), lookup, at, &x));
  assert_false(assay_dim_eval(parse(p, "2*N"), lookup, at, &x));
  assay_dims_destroy(p);
}

static const struct {
  const char *in, *name, *by, *text;
} replacements[] = {
    {"N", "N", "8", "8"},
    {"N*C + C", "N", "C", "C*C + C"},
    {"floor(N/2)", "N", "2*M", "M"},
    {"N/2", "N", "2*M", "M"},
    {"N/M", "M", "0", "?"},
    {"max(N - 3, 0)", "N", "M + 3", "M"},
    {"max(N - 3, 0)", "N", "2", "0"},
    {"min(N, M, 5)", "M", "3", "min(N, 3)"},
    {"N", "M", "8", "N"},
    {"N*(N/2)", "N", "4", "8"},
    {"N + 1", "N", "M/0", "?"},
    {"broadcast(N, M) + 1", "N", "1", "M + 1"},
    {"broadcast(N, M)", "M", "N", "N"},
};

static void test_replace(void** state) {
  (void)state;
  assay_dims_t* p = make_pool();
  char text[256];
  for (size_t i = 0; i < sizeof replacements / sizeof *replacements; i++) {
    if (strncmp(replacements[i].in, "floor", 5) == 0) continue;
    const assay_dim_t* d = assay_dim_replace(p, parse(p, replacements[i].in), replacements[i].name,
                                             parse(p, replacements[i].by));
    assert_string_equal(assay_dim_text(d, text, sizeof text), replacements[i].text);
  }
  assert_null(assay_dim_replace(p, NULL, "N", assay_dim_const(p, 1)));
  assay_dims_destroy(p);
}

// ---- random expressions -----------------------------------------------------------------------

static uint64_t rng;

static uint64_t draw(uint64_t below) {
  rng ^= rng << 13;
  rng ^= rng >> 7;
  rng ^= rng << 17;
  return (rng >> 11) % below;
}

typedef enum op {
  LEAF_NAME,
  LEAF_NUMBER,
  ADD,
  SUB,
  MUL,
  FLOORDIV,
  CEILDIV,
  MOD,
  MIN,
  MAX,
  BROADCAST
} op_t;

typedef struct tree {
  op_t op;
  int64_t leaf;  // which name, or the number
  struct tree *a, *b;
} tree_t;

// Trees of one round live here.
static tree_t trees[4096];
static size_t n_trees;

static tree_t* random_tree(int depth) {
  tree_t* t = &trees[n_trees++];
  *t = (tree_t){0};
  if (!depth || draw(8) == 0) {
    t->op = draw(2) ? LEAF_NAME : LEAF_NUMBER;
    t->leaf = t->op == LEAF_NAME ? (int64_t)draw(N_NAMES) : (int64_t)draw(25) - 8;
    if (t->op == LEAF_NUMBER && draw(100) == 0) t->leaf = draw(2) ? INT64_MAX : INT64_MIN;
    return t;
  }
  t->op = (op_t)(ADD + draw(BROADCAST - ADD + 1));
  t->a = random_tree(depth - 1);
  t->b = random_tree(depth - 1);
  return t;
}

static const assay_dim_t* build(assay_dims_t* p, const tree_t* t) {
  const assay_dim_t* (*const ops[])(assay_dims_t*, const assay_dim_t*, const assay_dim_t*) = {
      [ADD] = assay_dim_add,
      [SUB] = assay_dim_sub,
      [MUL] = assay_dim_mul,
      [FLOORDIV] = assay_dim_floordiv,
      [CEILDIV] = assay_dim_ceildiv,
      [MOD] = assay_dim_mod,
      [MIN] = assay_dim_min,
      [MAX] = assay_dim_max,
      [BROADCAST] = assay_dim_broadcast};
  if (t->op == LEAF_NAME) return assay_dim_symbol(p, names[t->leaf]);
  if (t->op == LEAF_NUMBER) return assay_dim_const(p, t->leaf);
  const assay_dim_t* a = build(p, t->a);
  return ops[t->op](p, a, build(p, t->b));
}

// What the tree is in plain arithmetic; false if it has no value.
static bool direct(const tree_t* t, const int64_t* at, int64_t* out) {
  int64_t a, b;
  if (t->op == LEAF_NAME) return *out = at[t->leaf], true;
  if (t->op == LEAF_NUMBER) return *out = t->leaf, true;
  if (!direct(t->a, at, &a) || !direct(t->b, at, &b)) return false;
  switch (t->op) {
    case ADD:
      return !__builtin_add_overflow(a, b, out);
    case SUB:
      return !__builtin_sub_overflow(a, b, out);
    case MUL:
      return !__builtin_mul_overflow(a, b, out);
    case MIN:
      return *out = a < b ? a : b, true;
    case MAX:
      return *out = a > b ? a : b, true;
    case BROADCAST:
      return *out = a == 1 ? b : a, a == b || a == 1 || b == 1;
    default:
      break;
  }
  if (b == 0 || (a == INT64_MIN && b == -1)) return false;
  int64_t q = a / b, r = a % b;
  if (t->op == CEILDIV)
    *out = q + (r != 0 && (r < 0) == (b < 0));
  else if (t->op == FLOORDIV)
    *out = q - (r != 0 && (r < 0) != (b < 0));
  else
    *out = r != 0 && (r < 0) != (b < 0) ? r + b : r;
  return true;
}

static void draw_bindings(int64_t* at) {
  for (int i = 0; i < N_NAMES; i++) at[i] = (int64_t)draw(draw(3) ? 12 : 5000);
}

typedef struct tally {
  int64_t compared, unknown, no_value;
} tally_t;

static void check_values(const assay_dim_t* d, const tree_t* t, const char* what, tally_t* tally) {
  char text[2048];
  for (int k = 0; k < 12; k++) {
    int64_t at[N_NAMES], expected, found;
    draw_bindings(at);
    if (!direct(t, at, &expected)) continue;
    if (!assay_dim_eval(d, lookup, at, &found)) {
      tally->no_value++;  // a sum in another order may overflow
      continue;
    }
    tally->compared++;
    if (found != expected)
      fail_msg("%s: %s is %lld, expected %lld, at N %lld C %lld H %lld W %lld", what,
               assay_dim_text(d, text, sizeof text), (long long)found, (long long)expected,
               (long long)at[0], (long long)at[1], (long long)at[2], (long long)at[3]);
  }
}

static void check_pair(assay_dims_t* p, const assay_dim_t* a, const tree_t* ta,
                       const assay_dim_t* b, const tree_t* tb) {
  int64_t at[N_NAMES], x, y;
  assert_ptr_equal(assay_dim_add(p, a, b), assay_dim_add(p, b, a));
  assert_ptr_equal(assay_dim_mul(p, a, b), assay_dim_mul(p, b, a));
  assert_ptr_equal(assay_dim_min(p, a, b), assay_dim_min(p, b, a));
  draw_bindings(at);
  if (!direct(ta, at, &x) || !direct(tb, at, &y)) return;
  if (assay_dim_same(a, b)) assert_int_equal(x, y);
  if (assay_dim_differ(a, b)) assert_int_not_equal(x, y);
  // a with N replaced by b is a at N = b.
  const assay_dim_t* replaced = assay_dim_replace(p, a, "N", b);
  int64_t moved[N_NAMES], found;
  memcpy(moved, at, sizeof moved);
  moved[0] = y;
  if (y >= 0 && direct(ta, moved, &x) && assay_dim_eval(replaced, lookup, at, &found))
    assert_int_equal(found, x);
}

static void test_random(void** state) {
  (void)state;
  uint64_t seed = test_seed();
  const char* rounds_text = getenv("ASSAY_TEST_ROUNDS");
  int rounds = rounds_text ? atoi(rounds_text) : 4000;
  tally_t tally = {0};
  int64_t built = 0;
  for (int round = 0; round < rounds; round++) {
    rng = (seed + (uint64_t)round) * 0x9e3779b97f4a7c15u | 1;
    for (int i = 0; i < 8; i++) (void)draw(2);
    n_trees = 0;
    assay_dims_t *p = make_pool(), *other = NULL;
    const tree_t *ta = random_tree(1 + (int)draw(5)), *tb = random_tree(1 + (int)draw(3));
    const assay_dim_t *a = build(p, ta), *b = build(p, tb);
    built++;
    if (!a) tally.unknown++;
    char what[64];
    snprintf(what, sizeof what, "seed %llu", (unsigned long long)(seed + (uint64_t)round));
    if (a) check_values(a, ta, what, &tally);
    if (a && b) check_pair(p, a, ta, b, tb);
    if (a) assert_ptr_equal(a, build(p, ta));

    // In another pool and back.
    assert_null(assay_dims_create(&other));
    assay_dims_copy_names(other, p);
    const assay_dim_t* copy = assay_dim_copy(other, a);
    assert_int_equal(a != NULL, copy != NULL);
    if (a) {
      char text[2048], again[2048];
      assert_string_equal(assay_dim_text(a, text, sizeof text),
                          assay_dim_text(copy, again, sizeof again));
      assert_ptr_equal(assay_dim_copy(p, copy), a);
    }
    assert_null(assay_dims_status(p));
    assay_dims_destroy(other);
    assay_dims_destroy(p);
  }
  print_message("%lld expressions, %lld unknown; %lld values, %lld without one\n", (long long)built,
                (long long)tally.unknown, (long long)tally.compared, (long long)tally.no_value);
  // The test is about values: most expressions must have some.
  assert_true(tally.compared > 2 * built);
  assert_true(tally.no_value * 20 < tally.compared);
}

// ---- limits -----------------------------------------------------------------------------------

static void test_growth(void** state) {
  (void)state;
  assay_dims_t* p = make_pool();
  char name[32], text[64];
  // Sums, products and nested divisions that grow until they are unknown, and stay it.
  const assay_dim_t *sum = assay_dim_const(p, 1), *power = parse(p, "N + M + 1"),
                    *nest = parse(p, "N");
  for (int i = 0; i < 300; i++) {
    snprintf(name, sizeof name, "s%d", i);
    sum = assay_dim_add(p, sum, assay_dim_symbol(p, name));
    power = assay_dim_mul(p, power, power);
    nest = assay_dim_add(p, assay_dim_floordiv(p, nest, parse(p, "M")),
                         assay_dim_mod(p, nest, parse(p, "K + 1")));
  }
  assert_string_equal(assay_dim_text(sum, text, sizeof text), "?");
  assert_null(power);
  assert_null(nest);
  // min and max have a few arguments only.
  const assay_dim_t* min = parse(p, "N");
  for (int i = 0; i < 100; i++) {
    snprintf(name, sizeof name, "s%d", i);
    min = assay_dim_min(p, min, assay_dim_symbol(p, name));
  }
  assert_null(min);
  // A pool has an end, behind which names and numbers still are made.
  for (int i = 0; i < 40000; i++) {
    snprintf(name, sizeof name, "t%d", i);
    const assay_dim_t* t = assay_dim_symbol(p, name);
    assert_non_null(t);
    assert_non_null(assay_dim_const(p, 1000 + i));
    const assay_dim_t* big = assay_dim_add(p, parse(p, "N + M*K + C*H + H*W*C"), t);
    (void)assay_dim_mul(p, big, assay_dim_mul(p, big, big));
  }
  assert_non_null(assay_dim_symbol(p, "last"));
  assert_null(assay_dims_status(p));
  assay_dims_destroy(p);
}

static void use_pool(assay_status_t* st) {
  assay_dims_t *p = NULL, *q = NULL;
  *st = assay_dims_create(&p);
  if (*st) return;
  char text[128];
  const assay_dim_t* d = parse(p, "max((N + 1)/2 - min(M, 4)*K, ceil(N, M) % 5)");
  for (int i = 0; i < 40; i++) (void)assay_dim_fresh(p, "x");
  d = assay_dim_replace(p, d, "K", assay_dim_symbol(p, "N"));
  *st = assay_dims_create(&q);
  if (!*st) assay_dims_copy_names(q, p);
  if (!*st) (void)assay_dim_text(assay_dim_copy(q, d), text, sizeof text);
  if (!*st) *st = assay_dims_status(q);
  *st = assay_status_join(*st, assay_dims_status(p));
  assay_dims_destroy(q);
  assay_dims_destroy(p);
}

static void test_no_memory(void** state) {
  (void)state;
  int64_t live = assay_alloc_live();
  for (int sticky = 0; sticky < 2; sticky++) {
    for (uint64_t nth = 1;; nth++) {
      assay_status_t st = NULL;
      (void)assay_alloc_fail_after(nth, sticky);
      use_pool(&st);
      uint64_t made = assay_alloc_fail_after(0, false);
      assert_int_equal(assay_alloc_live(), live);
      if (made < nth) {
        assert_null(st);
        break;
      }
      assert_int_equal(assay_status_code(st), ASSAY_NO_MEMORY);
      assay_status_free(st);
      assert_true(nth < 1000);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_forms),   cmocka_unit_test(test_pairs),
      cmocka_unit_test(test_names),   cmocka_unit_test(test_eval),
      cmocka_unit_test(test_replace), cmocka_unit_test(test_random),
      cmocka_unit_test(test_growth),  cmocka_unit_test(test_no_memory),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
