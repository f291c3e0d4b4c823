// Every operator whose results are rounded says how far: each row with a float output that is
// neither a discrete choice nor only moved elements has a bound function.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

// cmocka needs the four above before it
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "ops/bound.h"

static bool may_be_float(const assay_typeset_t* types) {
  const uint32_t floats = 1U << ASSAY_TYPE_FLOAT | 1U << ASSAY_TYPE_FLOAT16 |
                          1U << ASSAY_TYPE_BFLOAT16 | 1U << ASSAY_TYPE_DOUBLE;
  return (types->tensor | types->seq | types->optional | types->optional_seq) & floats;
}

// The schema of a row; of the first version that the onnx package knows where a row is older.
static const assay_schema_t* schema_of(const assay_op_t* op) {
  const int newest = assay_schema_newest(op->domain);
  const assay_schema_t* s = NULL;
  for (int version = op->since; !s && (version == op->since || version <= newest); version++)
    s = assay_schema_find(op->domain, op->name, version, NULL);
  return s;
}

// The first output that is rounded; NULL: none is.
static const char* rounded_output(const assay_op_t* op) {
  const assay_schema_t* s = schema_of(op);
  assert_non_null(s);
  for (int i = 0; i < s->n_outputs; i++)
    if (may_be_float(&s->outputs[i].types) && !(op->discrete >> i & 1)) return s->outputs[i].name;
  return NULL;
}

static void every_rounded_output_is_bounded(void** state) {
  int missing = 0;
  (void)state;
  for (size_t f = 0; f < assay_op_family_count(); f++) {
    for (const assay_op_t* op = assay_op_family(f); op->name; op++) {
      // What a body computes is bounded node by node; some rows are there to be refused by name.
      if (!op->eval || op->bound || op->flags & (ASSAY_OP_MOVES | ASSAY_OP_CONTROL)) continue;
      const char* output = rounded_output(op);
      if (!output) continue;
      fprintf(stderr, "%s%s%s-%d: output %s has no bound\n", op->domain, *op->domain ? "." : "",
              op->name, op->since, output);
      missing++;
    }
  }
  assert_int_equal(missing, 0);
}

// How many outputs a row has in the version of its domain that has most of them. variadic: any.
static int outputs_of(const assay_op_t* op, bool* variadic) {
  const int newest = assay_schema_newest(op->domain);
  int max = 0;
  for (int version = op->since; version == op->since || version <= newest; version++) {
    if (assay_op_find(op->domain, op->name, version) != op) break;
    const assay_schema_t* s = assay_schema_find(op->domain, op->name, version, NULL);
    if (!s) continue;
    max = s->n_outputs > max ? s->n_outputs : max;
    *variadic |= s->max_outputs > s->n_outputs;
  }
  return max;
}

// A bit of `discrete` beyond the outputs would say nothing of any.
static void discrete_outputs_are_outputs(void** state) {
  (void)state;
  for (size_t f = 0; f < assay_op_family_count(); f++) {
    for (const assay_op_t* op = assay_op_family(f); op->name; op++) {
      bool variadic = false;
      const int outputs = outputs_of(op, &variadic);
      if (!variadic && outputs < 32 && op->discrete >> outputs)
        fail_msg("%s-%d marks an output as discrete that it does not have", op->name, op->since);
    }
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(every_rounded_output_is_bounded),
      cmocka_unit_test(discrete_outputs_are_outputs),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
