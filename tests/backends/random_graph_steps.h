// The steps that random graphs are drawn from: each picks values that fit and adds a node or a few.
#ifndef ASSAY_TESTS_BACKENDS_RANDOM_GRAPH_STEPS_H_
#define ASSAY_TESTS_BACKENDS_RANDOM_GRAPH_STEPS_H_

#include "backends/random_steps_moves.h"
#include "backends/random_steps_pointwise.h"
#include "backends/random_steps_products.h"
#include "backends/random_steps_quantized.h"
#include "backends/random_steps_sums.h"

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
