// com.microsoft operators of text generation.
//
// NGramRepeatBlock is evaluated. GreedySearch, BeamSearch and Sampling run decoder graphs whose
// inputs and outputs (past states, masks, positions) are a matter of each exporter and of ONNX
// Runtime's code, not of a definition: their rows have no eval, so that they are refused by name,
// but their types are known.
#include <math.h>
#include <string.h>

#include "ops/data/control.h"
#include "ops/families.h"

// ---- NGramRepeatBlock --------------------------------------------------------------------------

static assay_status_t ngram_size(const assay_node_t* n, int64_t* out) {
  *out = assay_attr_i64(n, "ngram_size", 0);
  if (*out >= 1) return NULL;
  return ASSAY_NODE_ERROR(n, ASSAY_CORRUPT, "ngram_size is %lld; it must be positive",
                          (long long)*out);
}

static assay_status_t block_infer(assay_infer_t* c) {
  int64_t n = 0;
  assay_shape_t s = assay_infer_shape(c, 1);
  ASSAY_TRY(ngram_size(c->node, &n));
  ASSAY_TRY(assay_infer_want_rank(c, 0, 2, 2));
  ASSAY_TRY(assay_infer_want_rank(c, 1, 2, 2));
  return assay_infer_set(c, 0, ASSAY_TYPE_UNDEFINED, &s);
}

// Where the last n - 1 tokens occurred before, the token that followed must not come again.
static assay_status_t block_row(const assay_node_t* node, const int64_t* ids, int64_t length,
                                int64_t n, double* scores, int64_t vocabulary) {
  for (int64_t at = 0; at <= length - n; at++) {
    if (n > 1 && memcmp(ids + at, ids + length - (n - 1), (size_t)(n - 1) * sizeof *ids) != 0)
      continue;
    int64_t token = ids[at + n - 1];
    if (token < 0 || token >= vocabulary)
      return ASSAY_NODE_ERROR(node, ASSAY_INVALID_ARGUMENT,
                              "token %lld is outside the vocabulary of %lld", (long long)token,
                              (long long)vocabulary);
    scores[token] = -INFINITY;
  }
  return NULL;
}

static assay_status_t block_eval(assay_eval_t* c) {
  const assay_tensor_t *ids = c->in[0], *scores = c->in[1];
  assay_tensor_t* y = NULL;
  int64_t n = 0;
  ASSAY_TRY(ngram_size(c->node, &n));
  if (ids->rank != 2 || scores->rank != 2 || ids->dims[0] != scores->dims[0])
    return ASSAY_NODE_ERROR(
        c->node, ASSAY_INVALID_ARGUMENT,
        "inputs have shapes %s and %s; [batch, length] and [batch, vocabulary] are "
        "expected",
        ASSAY_DIMS_TEXT(ids), ASSAY_DIMS_TEXT(scores));
  ASSAY_TRY(assay_eval_output(c, 0, scores->type, 2, scores->dims, &y));
  ASSAY_TRY(assay_copy_elems(scores, 0, y, 0, scores->size));
  for (int64_t b = 0; ids->size > 0 && b < ids->dims[0]; b++)
    ASSAY_TRY(block_row(c->node, assay_i64(ids) + b * ids->dims[1], ids->dims[1], n,
                        assay_f64(y) + b * scores->dims[1], scores->dims[1]));
  return NULL;
}

// ---- searches ----------------------------------------------------------------------------------

static assay_status_t search_infer(assay_infer_t* c) {
  assay_shape_t ids = assay_infer_shape(c, 0), y = {.known = true, .rank = 2};
  if (ids.known && ids.rank >= 1) y.dims[0] = ids.dims[0];
  ASSAY_TRY(assay_infer_set(c, 0, ASSAY_TYPE_INT32, &y));
  return assay_infer_set(c, 1, ASSAY_TYPE_FLOAT, NULL);
}

static assay_status_t beam_infer(assay_infer_t* c) {
  assay_shape_t ids = assay_infer_shape(c, 0), y = {.known = true, .rank = 3};
  if (ids.known && ids.rank >= 1) y.dims[0] = ids.dims[0];
  ASSAY_TRY(assay_infer_set(c, 0, ASSAY_TYPE_INT32, &y));
  y.rank = 2;
  ASSAY_TRY(assay_infer_set(c, 1, ASSAY_TYPE_UNDEFINED, &y));
  return assay_infer_set(c, 2, ASSAY_TYPE_UNDEFINED, NULL);
}

#define MS(operator) .domain = "com.microsoft", .name = operator, .since = 1
#define SEARCH_ATTRS                                                                  \
  "decoder:g!, init_decoder:g, encoder:g, model_type:i=0, no_repeat_ngram_size:i=0, " \
  "decoder_start_token_id:i=-1, pad_token_id:i!, eos_token_id:i!, vocab_size:i=-1"

const assay_op_t assay_ops_ms_search[] = {
    {MS("NGramRepeatBlock"), .flags = ASSAY_OP_MOVES,
     .schema = "input_ids:Tid, scores:T -> scores_out:T | ngram_size:i! | Tid=int64; T=float",
     .infer = block_infer, .eval = block_eval},
    {MS("GreedySearch"), .flags = ASSAY_OP_CONTROL, .discrete = 1,
     .schema = "input_ids:I, max_length:I, min_length?:I, repetition_penalty?:T, vocab_mask?:I, "
               "prefix_vocab_mask?:I, attention_mask?:I -> sequences:I | " SEARCH_ATTRS
               " | T=float; I=int32",
     .infer = search_infer},
    {MS("Sampling"), .flags = ASSAY_OP_CONTROL | ASSAY_OP_RANDOM, .discrete = 1,
     .schema = "input_ids:I, max_length:I, min_length?:I, repetition_penalty?:T, vocab_mask?:I, "
               "prefix_vocab_mask?:I, attention_mask?:I, presence_mask?:I, seed?:I -> sequences:I, "
               "filtered_logits?:T | " SEARCH_ATTRS
               ", temperature:f=1, top_p:f=0, filter_value:f=-1e20, min_tokens_to_keep:i=0, "
               "presence_penalty:f=0, custom:i=0 | T=float; I=int32",
     .infer = search_infer},
    {MS("BeamSearch"), .flags = ASSAY_OP_CONTROL, .discrete = 1,
     .schema = "input_ids:F, max_length:I, min_length?:I, num_beams:I, num_return_sequences:I, "
               "length_penalty?:T, repetition_penalty?:T, vocab_mask?:M, prefix_vocab_mask?:M, "
               "attention_mask?:I, decoder_input_ids?:I, logits_processor?:I -> sequences:I, "
               "sequences_scores?:T, scores?:T | " SEARCH_ATTRS
               ", early_stopping:i=0 | T=float float16; F=float int32 float16; I=int32; M=int32",
     .infer = beam_infer},
    {0}};
