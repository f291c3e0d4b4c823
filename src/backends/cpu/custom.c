// Kernels of operators that were registered (include/assay/ops.h). They take floats of 16 bits as
// float32: what comes in is widened, and what goes out is rounded once.
#include "ops/custom.h"

#include "backends/cpu/pointwise/convert.h"
#include "backends/cpu/tactic.h"
#include "base/alloc.h"
#include "exec/segment/memory_plan.h"

typedef struct custom {
  assay_kernel_t base;
  const assay_node_t* node;
  // By the node's inputs, then its outputs; operand -1: left out.
  assay_custom_operand_t* arrays;
  int* operand;
  const assay_operand_t* operands;  // copies: the inputs', and then the outputs'
  size_t n_in, n_out;
} custom_t;

static bool is_half(assay_type_t type) {
  return type == ASSAY_TYPE_FLOAT16 || type == ASSAY_TYPE_BFLOAT16;
}

static size_t widened_bytes(const assay_operand_t* o) {
  const size_t bytes = is_half(o->type) ? (size_t)o->size * sizeof(float) : 0;
  return (bytes + ASSAY_BLOCK_ALIGNMENT - 1) / ASSAY_BLOCK_ALIGNMENT * ASSAY_BLOCK_ALIGNMENT;
}

// The scratch memory holds what is widened, one operand after the other. A kernel is one
// context's.
static assay_status_t run(assay_kernel_t* base, const void* const* in, void* const* out,
                          void* scratch) {
  const custom_t* k = (const custom_t*)base;
  assay_custom_operand_t* arrays = k->arrays;
  char* free_scratch = scratch;
  const size_t n = k->n_in + k->n_out;
  for (size_t i = 0; i < n; i++) {
    const assay_operand_t* o = &k->operands[i];
    const bool input = i < k->n_in;
    if (!arrays[i].there) continue;
    const void* data = input ? in[k->operand[i]] : out[k->operand[i]];
    if (is_half(o->type)) {
      if (input) cpu_widen(data, o->type, 0, o->size, (float*)(void*)free_scratch);
      data = free_scratch;
      free_scratch += widened_bytes(o);
    }
    arrays[i].data = (void*)(uintptr_t)data;
  }
  ASSAY_TRY(assay_custom_run_kernel(k->node, arrays, arrays + k->n_in));
  for (size_t i = k->n_in; i < n; i++) {
    const assay_operand_t* o = &k->operands[i];
    if (arrays[i].there && is_half(o->type))
      cpu_narrow(arrays[i].data, o->size, o->type, 0, out[k->operand[i]]);
  }
  return NULL;
}

static void destroy(assay_kernel_t* base) {
  custom_t* k = (custom_t*)base;
  assay_free(k->arrays);
  assay_free(k->operand);
  assay_free((void*)(uintptr_t)k->operands);
  assay_free(k);
}

static assay_custom_operand_t array_of(const assay_operand_t* o) {
  return (assay_custom_operand_t){.array = {.type = is_half(o->type) ? ASSAY_TYPE_FLOAT : o->type,
                                            .rank = o->rank,
                                            .dims = o->dims,
                                            .size = o->size},
                                  .there = true};
}

// Types that lie in memory element by element.
static bool is_plain(assay_type_t type) {
  return type != ASSAY_TYPE_STRING && assay_type_bits(type) % 8 == 0;
}

// Describes each input and output of the node. False: one is not of numbers.
static bool describe(const assay_sized_layer_t* l, custom_t* k, assay_operand_t* operands) {
  for (size_t i = 0; i < k->n_in + k->n_out; i++) {
    const bool input = i < k->n_in;
    k->operand[i] = input ? assay_sized_input_index(l, k->node->inputs[i]) : (int)(i - k->n_in);
    if (input && !k->node->inputs[i]) continue;
    if (k->operand[i] < 0) return false;
    const assay_operand_t* o = input ? &l->in[k->operand[i]] : &l->out[k->operand[i]];
    if (!o->value) continue;
    if (!is_plain(o->type)) return false;
    operands[i] = *o;
    k->arrays[i] = array_of(&operands[i]);
    k->base.scratch += widened_bytes(o);
    assay_storage_t* form = input ? &k->base.in[k->operand[i]] : &k->base.out[k->operand[i]];
    *form = (assay_storage_t){o->type, ASSAY_LAYOUT_PLAIN};
  }
  return true;
}

static assay_status_t make(const assay_sized_layer_t* l, assay_kernel_t** out) {
  const assay_node_t* n = l->layer->nodes[0];
  const assay_custom_op_t* op = l->layer->n_nodes == 1 ? assay_custom_of(n->op) : NULL;
  custom_t* k = NULL;
  assay_operand_t* operands = NULL;
  if (!op || !op->spec.kernel || l->n_out != n->n_outputs) return NULL;
  ASSAY_TRY(ASSAY_NEW(&k));
  k->base = (assay_kernel_t){.in_place = -1, .run = run, .destroy = destroy};
  k->node = n;
  k->n_in = n->n_inputs;
  k->n_out = n->n_outputs;
  assay_status_t st = assay_new_array(k->n_in + k->n_out, sizeof *operands, &operands);
  k->operands = operands;
  if (!st) st = assay_new_array(k->n_in + k->n_out, sizeof *k->arrays, &k->arrays);
  if (!st) st = assay_new_array(k->n_in + k->n_out, sizeof *k->operand, &k->operand);
  const bool fits =
      !st && describe(l, k, operands) && assay_custom_takes(n, k->arrays, k->arrays + k->n_in);
  if (!fits) return destroy(&k->base), st;
  *out = &k->base;
  return NULL;
}

// Nothing is known of how they compute, but the format: float32 at least.
const assay_tactic_t cpu_tactic_custom = {
    .name = "custom",
    .source = "assay",
    .make = make,
    .rounding = {.compute = ASSAY_FORMAT_FP32,
                 .accumulator = ASSAY_FORMAT_FP32,
                 .by_definition = true,
                 .function_ulps = 4},
};
