// Constants of square blocks, one below or beside the other, each of which is transposed: the
// matrices of a recurrent layer's gates, of heads, of projections that were put together.
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "diagnose/proposals.h"

enum { MANY = 1 << 22, BLOCKS = 64, LEAST = 2 };  // elements; blocks; rows of one

// A constant whose axis `tall` holds as many blocks of the length of axis `wide`.
typedef struct stack {
  int tall, wide;
  int64_t blocks, side;
} stack_t;

// Of axes that differ by a whole factor; a single block is a transposed weight (proposals_input.c).
static bool is_stack(const assay_tensor_t* x, int tall, int wide, stack_t* out) {
  const int64_t side = x->dims[wide];
  *out = (stack_t){.tall = tall, .wide = wide, .side = side};
  if (tall == wide || side < LEAST || x->dims[tall] % side != 0) return false;
  out->blocks = x->dims[tall] / side;
  return out->blocks > 1 && out->blocks <= BLOCKS;
}

// y = x with each block transposed, or block `only` alone where that is not negative.
static void turn(const assay_tensor_t* x, const stack_t* s, int64_t only, assay_tensor_t* y) {
  const int64_t tall = assay_dims_product(x->dims, s->tall + 1, x->rank);
  const int64_t wide = assay_dims_product(x->dims, s->wide + 1, x->rank);
  for (int64_t i = 0; i < x->size; i++) {
    const int64_t at = i / tall % x->dims[s->tall], column = i / wide % s->side;
    const int64_t block = at / s->side, row = at % s->side;
    const bool turns = only < 0 || block == only;
    const int64_t from = turns ? i + (column - row) * tall + (row - column) * wide : i;
    assay_f64(y)[i] = assay_f64(x)[from];
  }
}

static assay_status_t offer_turned(const assay_suspect_t* s, const char* cause, size_t input,
                                   const assay_tensor_t* x, const stack_t* k, int64_t only,
                                   const assay_trial_t* t, bool* stop) {
  assay_tensor_t* y = NULL;
  char text[200];
  ASSAY_TRY(assay_tensor_create(x->type, x->rank, x->dims, &y));
  turn(x, k, only, y);
  const long long side = (long long)k->side, blocks = (long long)k->blocks;
  const char* name = s->node->inputs[input]->name;
  if (only < 0)
    snprintf(text, sizeof text, "'%.100s' with each of its %lld blocks of %lld by %lld transposed",
             name, blocks, side, side);
  else
    snprintf(text, sizeof text, "'%.100s' with block %lld of its %lld transposed", name,
             (long long)only, blocks);
  return assay_offer_constant(s, cause, input, y, text, t, stop);
}

// All blocks at once, and each by itself where they are few.
static assay_status_t offer_stack(const assay_suspect_t* s, const char* cause, size_t input,
                                  const assay_tensor_t* x, const stack_t* k, const assay_trial_t* t,
                                  bool* stop) {
  enum { FEW = 4 };  // gates
  for (int64_t only = -1; only < (k->blocks <= FEW ? k->blocks : 0) && !*stop; only++)
    ASSAY_TRY(offer_turned(s, cause, input, x, k, only, t, stop));
  return NULL;
}

// Sources: matrices of the state that one framework multiplies from the left and another from the
// right, huggingface/transformers issue 10712; fused projections that are stored as one weight,
// vllm-project/vllm pull request 53114.
assay_status_t assay_propose_turned(const assay_suspect_t* s, const char* cause,
                                    const assay_trial_t* t, bool* stop) {
  static const char* const ops[] = {"LSTM", "GRU", "RNN", "MatMul", "Gemm", "Conv", "Gather"};
  bool is_one = false;
  for (size_t i = 0; i < sizeof ops / sizeof *ops; i++)
    is_one |= !*s->node->domain && strcmp(s->node->op_type, ops[i]) == 0;
  for (size_t i = 0; is_one && i < s->n_in && !*stop; i++) {
    assay_tensor_t* x = NULL;
    ASSAY_TRY(assay_suspect_constant(s, i, &x));
    assay_status_t st = NULL;
    const bool fits = x && x->kind == ASSAY_KIND_TENSOR && x->store == ASSAY_STORE_F64 &&
                      x->size > 0 && x->size <= MANY;
    // Places of kernels are no rows: the first three axes at most, which recurrent layers have.
    const int axes = fits ? (x->rank < 3 ? x->rank : x->rank == 3 ? 3 : 2) : 0;
    for (int tall = 0; tall < axes; tall++)
      for (int wide = 0; wide < axes && !st && !*stop; wide++) {
        stack_t k;
        if (is_stack(x, tall, wide, &k)) st = offer_stack(s, cause, i, x, &k, t, stop);
      }
    assay_tensor_release(x);
    if (st) return st;
  }
  return NULL;
}
