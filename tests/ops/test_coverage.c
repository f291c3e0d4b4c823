// What rows of operators leave out: each operator without a function of a kind is in coverage.inc
// with a reason, and nothing is there that has one.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

// cmocka needs these before it
#include <cmocka.h>

#include "ops/op.h"

typedef struct name {
  const char *domain, *op;
} name_t;

static const name_t with_range[] = {
#define ASSAY_RANGE(domain, op, ...) {domain, op},
#include "ranges/rows.inc"
#undef ASSAY_RANGE
};

static const name_t with_gradient[] = {
#define ASSAY_VJP(op, function) {"", op},
#include "eval/gradients/vjp.inc"
#undef ASSAY_VJP
};

static bool is_in(const name_t* list, size_t n, const assay_op_t* op) {
  for (size_t i = 0; i < n; i++)
    if (strcmp(list[i].domain, op->domain) == 0 && strcmp(list[i].op, op->name) == 0) return true;
  return false;
}

static bool rounds(const assay_op_t* op) {
  return !(op->flags & ASSAY_OP_MOVES) && op->discrete == 0;
}

static bool lacks_inference(const assay_op_t* op) { return !op->infer; }
static bool lacks_evaluation(const assay_op_t* op) { return !op->eval; }
static bool lacks_bound(const assay_op_t* op) { return rounds(op) && !op->bound; }
static bool lacks_double_double(const assay_op_t* op) { return rounds(op) && !op->dd; }
// Without a row an operator goes by its bound, if it has one.
static bool lacks_range(const assay_op_t* op) {
  return rounds(op) && !op->bound && !is_in(with_range, sizeof with_range / sizeof *with_range, op);
}
// Pointwise operators have one by differences; what has discrete outputs, draws or quantizes has
// none.
static bool lacks_gradient(const assay_op_t* op) {
  const uint32_t without =
      ASSAY_OP_POINTWISE | ASSAY_OP_RANDOM | ASSAY_OP_CONTROL | ASSAY_OP_QUANTIZES;
  return op->discrete == 0 && !(op->flags & without) &&
         !is_in(with_gradient, sizeof with_gradient / sizeof *with_gradient, op);
}

static const struct {
  const char* name;
  bool (*lacks)(const assay_op_t* op);
} kinds[] = {{"inference", lacks_inference}, {"evaluation", lacks_evaluation},
             {"bound", lacks_bound},         {"double-double", lacks_double_double},
             {"range", lacks_range},         {"gradient", lacks_gradient}};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

static struct {
  const char *kind, *domain, *op, *reason;
  bool so;  // seen to be so
} listed[] = {
#define LACKS(kind, domain, op, reason) {kind, domain, op, reason, false},
#include "ops/coverage.inc"
#undef LACKS
};
enum { N_LISTED = sizeof listed / sizeof *listed };

// Notes that the list says so, with a reason.
static bool is_listed(const char* kind, const assay_op_t* op) {
  for (size_t i = 0; i < N_LISTED; i++)
    if (strcmp(listed[i].kind, kind) == 0 && strcmp(listed[i].domain, op->domain) == 0 &&
        strcmp(listed[i].op, op->name) == 0)
      return listed[i].so = true, *listed[i].reason;
  return false;
}

static bool lacks_in_any_version(size_t kind, const assay_op_t* family, const assay_op_t* op) {
  for (const assay_op_t* o = family; o->name; o++)
    if (strcmp(o->domain, op->domain) == 0 && strcmp(o->name, op->name) == 0 &&
        kinds[kind].lacks(o))
      return true;
  return false;
}

static bool came_before(const assay_op_t* family, const assay_op_t* op) {
  for (const assay_op_t* o = family; o < op; o++)
    if (strcmp(o->domain, op->domain) == 0 && strcmp(o->name, op->name) == 0) return true;
  return false;
}

static void what_rows_leave_out_is_listed(void** state) {
  (void)state;
  size_t wrong = 0, operators = 0;
  for (size_t f = 0; f < assay_op_family_count(); f++)
    for (const assay_op_t *family = assay_op_family(f), *op = family; op->name; op++) {
      if (came_before(family, op)) continue;
      operators++;
      for (size_t k = 0; k < N_KINDS; k++) {
        if (!lacks_in_any_version(k, family, op) || is_listed(kinds[k].name, op)) continue;
        print_error("LACKS(\"%s\", \"%s\", \"%s\", \"\"): not in coverage.inc with a reason\n",
                    kinds[k].name, op->domain, op->name);
        wrong++;
      }
    }
  for (size_t i = 0; i < N_LISTED; i++) {
    if (listed[i].so) continue;
    print_error("%s of %s%s%s is there: take it out of coverage.inc\n", listed[i].kind,
                listed[i].domain, *listed[i].domain ? "/" : "", listed[i].op);
    wrong++;
  }
  assert_true(operators > 200);
  assert_int_equal(wrong, 0);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(what_rows_leave_out_is_listed)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
