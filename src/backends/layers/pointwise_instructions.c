// Instructions of pointwise nodes, and what gives their operands.
#include <string.h>

#include "backends/layers/pointwise_internal.h"

int pointwise_value(pointwise_compiler_t* c, const assay_value_t* v, bool integers) {
  if (!v) return -1;
  for (size_t i = 0; i < c->p->n_code; i++)
    if (c->made[i] == v) return POINTWISE_STREAMS + (int)i;
  if (v == c->options->result) return pointwise_result_stream(c);
  const pointwise_cut_t* cut = pointwise_cut_of(c, v);
  if (cut) return pointwise_cut_stream(c, cut);
  const int input = assay_sized_input_index(c->l, v);
  if (input < 0) return integers ? -1 : pointwise_moved_stream(c, v);
  return pointwise_add_stream(c, &c->l->in[input], input, integers);
}

// After sums the short functions do.
int pointwise_emit(pointwise_compiler_t* c, int function, int n, const int* operands,
                   const float* param, int cost) {
  const size_t at = c->p->n_code;
  pointwise_instruction_t code = {.function = function};
  if (at == POINTWISE_INSTRUCTIONS) return -1;
  for (int i = 0; i < 3; i++) {
    if (i < n && operands[i] < 0) return -1;
    code.operand[i] = i < n ? operands[i] : -1;
  }
  if (c->options->result && !c->options->integers)
    code.function = (int)pointwise_short((pointwise_function_t)function);
  if (param) memcpy(code.param, param, sizeof code.param);
  c->p->code[c->p->n_code++] = code;
  c->p->cost += cost;
  return POINTWISE_STREAMS + (int)at;
}
