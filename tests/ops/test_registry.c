// The table of operators, all families of families.inc: rows are in order and there is one for each
// name and version; schema texts parse; every operator version of the onnx package has a row that
// evaluates it.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

// cmocka needs the four above before it
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ops/op.h"
#include "ops/schema_text.h"

static int failures;

static void fail_row(const char* domain, const char* name, int since, const char* why) {
  fprintf(stderr, "%s%s%s-%d: %s\n", domain, *domain ? "." : "", name, since, why);
  failures++;
}

// Calls f for every row of every family.
static void each_row(void (*f)(const assay_op_t* family, const assay_op_t* op)) {
  failures = 0;
  for (size_t i = 0; i < assay_op_family_count(); i++) {
    const assay_op_t* family = assay_op_family(i);
    for (const assay_op_t* op = family; op->name; op++) f(family, op);
  }
  assert_int_equal(failures, 0);
}

static bool same_operator(const assay_op_t* a, const assay_op_t* b) {
  return strcmp(a->domain, b->domain) == 0 && strcmp(a->name, b->name) == 0;
}

// ---- rows -------------------------------------------------------------------------------------

static void check_row(const assay_op_t* family, const assay_op_t* op) {
  if (!op->domain || op->since < 1) fail_row("?", op->name, op->since, "no domain or version");
  for (size_t i = 0; i < assay_op_family_count(); i++) {
    for (const assay_op_t* other = assay_op_family(i); other->name; other++) {
      if (other == op || !same_operator(op, other)) continue;
      if (other->since == op->since) fail_row(op->domain, op->name, op->since, "two rows");
      if (assay_op_family(i) == family && (other < op) != (other->since < op->since)) {
        fail_row(op->domain, op->name, op->since, "its family's rows are not in order");
      }
    }
  }
}

static void rows_are_in_order(void** state) {
  (void)state;
  each_row(check_row);
}

// ---- schemas ----------------------------------------------------------------------------------

static void check_schema(const assay_op_t* family, const assay_op_t* op) {
  (void)family;
  if (!op->schema) {
    // A row may hold before the first version that the onnx package knows: then models of that age
    // are refused by the checker, not by the table.
    bool known = false;
    (void)assay_schema_find(op->domain, op->name, op->since, &known);
    if (!known) fail_row(op->domain, op->name, op->since, "no schema, generated or as text");
    return;
  }
  const char* error = NULL;
  const assay_schema_t* s =
      assay_schema_text_parse(op->domain, op->name, op->since, op->schema, &error);
  static const assay_schema_t* kept[4096];  // so that what is never freed is not called a leak
  static size_t n_kept;
  if (n_kept < sizeof kept / sizeof *kept) kept[n_kept++] = s;
  if (!s || error) {
    fail_row(op->domain, op->name, op->since, error ? error : "schema text is not parsed");
    return;
  }
  for (int i = 0; i < s->n_inputs; i++) {
    for (int j = 0; j < i; j++) {
      if (strcmp(s->inputs[i].name, s->inputs[j].name) == 0) {
        fail_row(op->domain, op->name, op->since, "two inputs of one name");
      }
    }
  }
  for (int i = 0; i < s->n_attrs; i++) {
    for (int j = 0; j < i; j++) {
      if (strcmp(s->attrs[i].name, s->attrs[j].name) == 0) {
        fail_row(op->domain, op->name, op->since, "two attributes of one name");
      }
    }
  }
  if (assay_schema_find(op->domain, op->name, op->since, NULL) == NULL) {
    fail_row(op->domain, op->name, op->since, "its schema is not found by name");
  }
}

static void schemas_parse(void** state) {
  (void)state;
  each_row(check_schema);
}

// ---- what is evaluated ------------------------------------------------------------------------

typedef struct exception {
  const char *domain, *name, *reason;
} exception_t;

// Operators that the onnx package has and Assay does not evaluate.
static const exception_t not_evaluated[] = {
    {"ai.onnx.preview.training", "Gradient", "it asks for the derivative of a graph"},
    {NULL, NULL, NULL},
};

// Rows that no model is evaluated with: they refuse the operator by name.
static const exception_t refused[] = {
    {"com.microsoft", "GreedySearch", "a generation loop around two subgraphs"},
    {"com.microsoft", "Sampling", "a generation loop around two subgraphs"},
    {"com.microsoft", "BeamSearch", "a generation loop around two subgraphs"},
    {"com.microsoft", "ConvTransposeWithDynamicPads", "its text does not say what Pads hold"},
    {"com.microsoft", "QOrderedMatMul", "its text leaves cublasLt's matrix orders open"},
    {NULL, NULL, NULL},
};

static bool listed(const exception_t* list, const char* domain, const char* name) {
  for (; list->name; list++) {
    if (strcmp(list->domain, domain) == 0 && strcmp(list->name, name) == 0) return true;
  }
  return false;
}

static void every_standard_version_has_a_row(void** state) {
  (void)state;
  failures = 0;
  for (size_t i = 0; i < assay_schema_count(); i++) {
    const assay_schema_t* s = assay_schema_at(i);
    const assay_op_t* op = assay_op_find(s->domain, s->name, s->since);
    const bool evaluated = op && op->eval;
    const bool expected = !listed(not_evaluated, s->domain, s->name) && !s->deprecated;
    if (evaluated || !expected) continue;
    fail_row(s->domain, s->name, s->since, op ? "its row has no eval" : "no row");
  }
  for (const exception_t* e = not_evaluated; e->name; e++) {
    const assay_op_t* op = assay_op_find(e->domain, e->name, INT32_MAX);
    if (op && op->eval) fail_row(e->domain, e->name, op->since, "listed, but evaluated");
  }
  assert_int_equal(failures, 0);
}

static void check_eval(const assay_op_t* family, const assay_op_t* op) {
  (void)family;
  const bool expected = listed(refused, op->domain, op->name);
  if (!op->eval && !expected) fail_row(op->domain, op->name, op->since, "no eval");
  if (op->eval && expected) fail_row(op->domain, op->name, op->since, "listed, but evaluated");
}

static void rows_evaluate(void** state) {
  (void)state;
  each_row(check_eval);
}

// ---- inference and cost -----------------------------------------------------------------------

// Rows without inference: types by the schema's variables, shapes unknown until run.
static const exception_t not_inferred[] = {
    {NULL, NULL, NULL},
};

// Rows that do arithmetic on every element and do not say how much: those whose cost is that of
// reading and writing their tensors are not pointwise and sum no products.
static const exception_t not_counted[] = {
    {"", "Cast", "conversion only"},
    {"", "CastLike", "conversion only"},
    {"", "BitCast", "conversion only"},
    {"", "Dropout", "the identity when not training"},
    {"ai.onnx.ml", "Binarizer", "one comparison an element"},
    {NULL, NULL, NULL},
};

static void check_functions(const assay_op_t* family, const assay_op_t* op) {
  (void)family;
  if (!op->infer && !listed(not_inferred, op->domain, op->name)) {
    fail_row(op->domain, op->name, op->since, "no infer");
  }
  const bool counts = op->flags & (ASSAY_OP_POINTWISE | ASSAY_OP_CONTRACTS);
  if (counts && !(op->flags & ASSAY_OP_MOVES) && !op->cost &&
      !listed(not_counted, op->domain, op->name)) {
    fail_row(op->domain, op->name, op->since, "no cost");
  }
}

static void rows_infer_and_count(void** state) {
  (void)state;
  each_row(check_functions);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(rows_are_in_order),
      cmocka_unit_test(schemas_parse),
      cmocka_unit_test(every_standard_version_has_a_row),
      cmocka_unit_test(rows_evaluate),
      cmocka_unit_test(rows_infer_and_count),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
