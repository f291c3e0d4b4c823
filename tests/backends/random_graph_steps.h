// The steps that random graphs are drawn from: each picks values that fit and adds a node or a few.
#ifndef ASSAY_TESTS_BACKENDS_RANDOM_GRAPH_STEPS_H_
#define ASSAY_TESTS_BACKENDS_RANDOM_GRAPH_STEPS_H_

#include "backends/random_steps_moves.h"
#include "backends/random_steps_pointwise.h"
#include "backends/random_steps_products.h"
#include "backends/random_steps_quantized.h"
#include "backends/random_steps_sums.h"

// ---- what follows from sizes ----------------------------------------------------------------

// A number of rank 0 or 1 that a size of x gives: as it is, its root, its inverse, its logarithm.
static int size_of(random_graph_t* g, const random_value_t* x) {
  static const char* const functions[] = {"Sqrt %s", "Reciprocal %s", "Log %s", "Neg %s"};
  const int s = emit(g, ROWS_NONE, 1, "Shape %s", x->name);
  if (s < 0) return -1;
  const int i = emit(g, ROWS_NONE, 1, "Gather %s %s | axis=0", g->values[s].name,
                     constant(g, ASSAY_TYPE_INT64, 0, NULL, one_in(g, 2) ? "= 0" : "= -1"));
  if (i < 0) return -1;
  int y = emit(g, ROWS_MIXED, 1, "Cast %s | to=%d", g->values[i].name, (int)x->type);
  for (int64_t n = draw(g, 0, 2); n && y >= 0; n--)
    y = emit(g, ROWS_MIXED, 1, functions[draw(g, 0, 3)], g->values[y].name);
  if (y >= 0 && one_in(g, 2))
    y = emit(g, ROWS_MIXED, 1, "Mul %s %s", g->values[y].name, number(g, x->type, 0.37));
  return y;
}

// Samples that are scaled by the size of the batch differ from one batch to the next.
static bool random_graph_of_sizes(random_graph_t* g) {
  PICK(x, is_full);
  if (x.rank < 1 || x.type == ASSAY_TYPE_BFLOAT16) return false;
  const int kind = (int)draw(g, 0, 3);
  if (kind == 0) {
    const int y = size_of(g, &x);
    if (y >= 0)
      emit(g, ROWS_MIXED, 1, one_in(g, 2) ? "Mul %s %s" : "Add %s %s", x.name, g->values[y].name);
    return true;
  }
  const int s = emit(g, ROWS_NONE, 1, "Shape %s", x.name);
  if (s < 0) return true;
  if (kind == 1) {  // one number everywhere
    char text[64];
    snprintf(text, sizeof text, "= %g", (double)draw(g, -3, 3) / 7);
    const int64_t one[1] = {1};
    const int y =
        emit(g, ROWS_NONE, 1, "Expand %s %s", constant(g, x.type, 1, one, text), g->values[s].name);
    const int f = y < 0 ? -1 : emit(g, x.rows, 1, "Cos %s", g->values[y].name);
    if (f >= 0) emit(g, x.rows, 1, "Add %s %s", x.name, g->values[f].name);
  } else if (kind == 2) {  // to the shape that it has
    emit(g, x.rows, 1, "Expand %s %s", x.name, g->values[s].name);
  } else {  // positions along the last axis
    const int i = emit(g, ROWS_NONE, 1, "Gather %s %s | axis=0", g->values[s].name,
                       constant(g, ASSAY_TYPE_INT64, 0, NULL, "= -1"));
    if (i < 0 || (x.rank == 1 && x.rows == 0)) return true;
    const int r =
        emit(g, ROWS_NONE, 1, "Range %s %s %s", constant(g, ASSAY_TYPE_INT64, 0, NULL, "= 0"),
             g->values[i].name, constant(g, ASSAY_TYPE_INT64, 0, NULL, "= 1"));
    const int f =
        r < 0 ? -1 : emit(g, ROWS_NONE, 1, "Cast %s | to=%d", g->values[r].name, (int)x.type);
    const int y = f < 0 ? -1 : emit(g, ROWS_NONE, 1, "Sin %s", g->values[f].name);
    if (y >= 0) emit(g, x.rows, 1, "Add %s %s", x.name, g->values[y].name);
  }
  return true;
}

#undef THEN
#undef NAME
#undef PICK

const random_step_t random_steps[] = {{"conv", step_conv, 10},
                                      {"conv_transpose", step_conv_transpose, 3},
                                      {"batchnorm", step_batchnorm, 5},
                                      {"matmul", step_matmul, 7},
                                      {"left_matmul", step_left_matmul, 1},
                                      {"gemm", step_gemm, 4},
                                      {"attention", step_attention, 2},
                                      {"heads", step_heads, 2},
                                      {"lstm", step_lstm, 1},
                                      {"function", step_function, 12},
                                      {"clip", step_clip, 2},
                                      {"composed", step_composed, 6},
                                      {"binary_constant", step_binary_constant, 8},
                                      {"residual", step_residual, 8},
                                      {"gate", step_gate, 2},
                                      {"where", step_where, 1},
                                      {"prelu", step_prelu, 1},
                                      {"concat", step_concat, 4},
                                      {"split", step_split, 3},
                                      {"slice", step_slice, 3},
                                      {"pad", step_pad, 2},
                                      {"transpose", step_transpose, 3},
                                      {"reshape", step_reshape, 3},
                                      {"shape_chain", step_shape_chain, 2},
                                      {"squeeze", step_squeeze, 2},
                                      {"gather", step_gather, 2},
                                      {"pool", step_pool, 4},
                                      {"global_pool", step_global_pool, 2},
                                      {"resize", step_resize, 2},
                                      {"depth_to_space", step_depth_to_space, 1},
                                      {"softmax", step_softmax, 3},
                                      {"layernorm", step_layernorm, 3},
                                      {"layernorm_parts", step_layernorm_parts, 1},
                                      {"instance_norm", step_instance_norm, 1},
                                      {"reduce", step_reduce, 3},
                                      {"choice", step_choice, 1},
                                      {"cast", step_cast, 2},
                                      {"q_conv", step_q_conv, 3},
                                      {"q_matmul", step_q_matmul, 2},
                                      {"quantize", step_quantize, 1}};
const size_t n_random_steps = sizeof random_steps / sizeof *random_steps;

#endif  // ASSAY_TESTS_BACKENDS_RANDOM_GRAPH_STEPS_H_
