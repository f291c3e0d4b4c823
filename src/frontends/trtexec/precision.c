// --fp16, --bf16, --int8, --fp8, --int4, --best and --sparsity: which format a build is in.
//
// float32 values are put into fp16 or bf16. int8, fp8 and int4 are where Q/DQ nodes of these types
// say so, as in TensorRT, whatever the flags; --fp8 and --int4 say only that such
// nodes are expected.
#include <string.h>

#include "backends/cpu/gemm/gemm.h"
#include "cli/plan_options.h"
#include "edit/weights/sparsity.h"
#include "frontends/trtexec/edit.h"
#include "frontends/trtexec/log.h"
#include "onnx/onnx.h"

// ---- what the model's quantizers are of ---------------------------------------------------------

typedef struct kinds {
  bool any, int8, fp8, int4;
} kinds_t;

static void note_type(kinds_t* k, const assay_value_t* v) {
  const assay_valtype_t* t = v ? (v->type ? v->type : v->declared) : NULL;
  switch (t && t->kind == ASSAY_KIND_TENSOR ? t->elem : ASSAY_TYPE_UNDEFINED) {
    case ASSAY_TYPE_INT8:
    case ASSAY_TYPE_UINT8:
      k->int8 = true;
      break;
    case ASSAY_TYPE_FLOAT8E4M3FN:
      k->fp8 = true;
      break;
    case ASSAY_TYPE_INT4:
    case ASSAY_TYPE_UINT4:
      k->int4 = true;
      break;
    default:
      break;
  }
}

// Of operators that know quantized tensors: the types of what they read and make.
static kinds_t kinds_of(const assay_model_t* m) {
  kinds_t k = {.any = assay_model_quantizes(m)};
  for (size_t g = 0; g < m->n_graphs; g++)
    for (size_t i = 0; i < m->graphs[g]->n_nodes; i++) {
      const assay_node_t* n = m->graphs[g]->nodes[i];
      if (!n->op || !(n->op->flags & ASSAY_OP_QUANTIZES)) continue;
      const int64_t bits = assay_attr_i64(n, "bits", 0);  // of codes in bytes
      k.int4 |= bits == 4;
      k.int8 |= bits == 8;
      for (size_t j = 0; !bits && j < n->n_inputs; j++) note_type(&k, n->inputs[j]);
      for (size_t j = 0; !bits && j < n->n_outputs; j++) note_type(&k, n->outputs[j]);
    }
  return k;
}

// ---- formats ------------------------------------------------------------------------------------

// The format of a CPU's faster kernels.
static const char* fast_format(void) { return cpu_gemm_has_bf16() ? "bf16" : "fp16"; }

static void warn_of_missing(const trt_options_t* o, const kinds_t* k) {
  if (trt_given(o, TRT_FLAG_fp8) && !k->fp8)
    trt_warn(
        "--fp8: the model has no Q/DQ nodes of fp8 (float8e4m3fn), and nothing runs in it: 'assay "
        "edit quantize MODEL --format fp8 --inputs FILE --output FILE' puts them in");
  if (trt_given(o, TRT_FLAG_int4) && !k->int4)
    trt_warn(
        "--int4: the model has no Q/DQ nodes of int4, and nothing runs in it: 'assay edit quantize "
        "MODEL --format int4 --output FILE' puts them in front of weights");
}

static assay_status_t choose_format(trt_job_t* j) {
  const trt_options_t* o = j->options;
  const bool best = trt_given(o, TRT_FLAG_best), int8 = trt_given(o, TRT_FLAG_int8);
  const bool fp16 = trt_given(o, TRT_FLAG_fp16), bf16 = trt_given(o, TRT_FLAG_bf16);
  if (int8 && !assay_model_quantizes(j->model)) ASSAY_TRY(trt_quantize(j));
  const kinds_t k = kinds_of(j->model);
  if (int8 && !k.any) trt_warn("--int8: the model has nothing that can be quantized");
  if (int8 && k.any && !k.int8)
    trt_warn("--int8: the model's Q/DQ nodes are of other types, and nothing runs in int8");
  warn_of_missing(o, &k);
  if (k.int8 && (int8 || best)) {
    j->native.precision = "int8";
    if (fp16 || bf16 || best)
      trt_info(
          "The model has Q/DQ nodes: its layers between them compute on int8, the others in fp32");
  } else if (best || (fp16 && bf16)) {
    j->native.precision = fast_format();
    trt_info("Of the formats that are allowed, %s is taken", j->native.precision);
  } else if (fp16 || bf16) {
    j->native.precision = fp16 ? "fp16" : "bf16";
  }
  return NULL;
}

// ---- --sparsity=force ---------------------------------------------------------------------------

static void report_pruned(size_t n, size_t n_pruned) {
  if (n_pruned)
    trt_warn(
        "--sparsity=force is deprecated and changes results: of every four elements of %zu weights "
        "the two smallest became 0 (%zu others stay: no multiple of four, or no floats). 'assay "
        "polygraphy surgeon prune' writes such a model, to be trained again",
        n_pruned, n - n_pruned);
  else
    trt_warn(
        "--sparsity=force changes nothing: none of the %zu weights that are multiplied by is of "
        "floats, with a multiple of four along the axis that is summed over",
        n);
}

// Weights lose the two smallest of every four elements, as 'surgeon prune' has them lose these.
static assay_status_t prune(trt_job_t* j) {
  assay_model_t *raw = NULL, *pruned = NULL, *ready = NULL;
  assay_sparse_weight_t* weights = NULL;
  size_t n = 0, n_pruned = 0;
  if (j->edited)
    raw = assay_model_retain(j->edited);
  else
    ASSAY_TRY(assay_onnx_read(j->native.model, &raw));
  assay_status_t st = assay_model_clone(raw, &pruned);
  assay_model_release(raw);
  if (!st) st = assay_sparsity_find(pruned, &weights, &n);
  for (size_t i = 0; !st && i < n; i++) {
    st = assay_sparsity_prune(&weights[i]);
    n_pruned += weights[i].fits;
  }
  if (!st) st = assay_onnx_prepare(pruned, 0, NULL, &ready);
  if (st) return assay_model_release(pruned), assay_status_note(st, "--sparsity=force");
  assay_model_release(j->edited);
  assay_model_release(j->model);
  j->edited = pruned;
  j->model = j->native.loaded = ready;
  j->pruned = n_pruned > 0;
  report_pruned(n, n_pruned);
  return NULL;
}

assay_status_t trt_choose_precision(trt_job_t* j) {
  if (trt_is(j->options, TRT_FLAG_sparsity, "force")) ASSAY_TRY(prune(j));
  return choose_format(j);
}
