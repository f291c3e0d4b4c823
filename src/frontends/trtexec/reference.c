// --loadRefOutputs: how far outputs are from files.
#include <math.h>
#include <string.h>

#include "frontends/trtexec/bindings.h"
#include "frontends/trtexec/log.h"

typedef struct pair {
  const assay_tensor_t *got, *want;  // canonical, of as many elements
  double atol, rtol;
} pair_t;

static double element(const assay_tensor_t* t, int64_t i) {
  return t->store == ASSAY_STORE_F64 ? assay_f64(t)[i] : (double)assay_i64(t)[i];
}

// Infinite where one is NaN and the other is not, or they are different infinities.
static double distance(const pair_t* p, int64_t i) {
  const double a = element(p->got, i), b = element(p->want, i);
  if (a == b || (isnan(a) && isnan(b))) return 0;
  const double d = fabs(a - b);
  return isnan(d) ? (double)INFINITY : d;
}

// The share of elements outside atol + rtol |reference|.
static double l0(const pair_t* p) {
  int64_t n = 0;
  for (int64_t i = 0; i < p->got->size; i++) {
    const double limit = p->atol + p->rtol * fabs(element(p->want, i)), d = distance(p, i);
    n += d > 0 && !(d <= limit && isfinite(d));
  }
  return p->got->size ? (double)n / (double)p->got->size : 0;
}

static double l1(const pair_t* p) {
  double sum = 0;
  for (int64_t i = 0; i < p->got->size; i++) sum += distance(p, i);
  return p->got->size ? sum / (double)p->got->size : 0;
}

static double l2(const pair_t* p) {
  double sum = 0;
  for (int64_t i = 0; i < p->got->size; i++) sum += distance(p, i) * distance(p, i);
  return p->got->size ? sum / (double)p->got->size : 0;
}

static double max(const pair_t* p) {
  double m = 0;
  for (int64_t i = 0; i < p->got->size; i++) m = fmax(m, distance(p, i));
  return m;
}

// 1 - cosine; of two zeros 0, of one 1.
static double cosine(const pair_t* p) {
  double ab = 0, aa = 0, bb = 0;
  for (int64_t i = 0; i < p->got->size; i++) {
    const double a = element(p->got, i), b = element(p->want, i);
    ab += a * b;
    aa += a * a;
    bb += b * b;
  }
  if (aa == 0 || bb == 0) return aa == bb ? 0 : 1;
  return 1 - ab / (sqrt(aa) * sqrt(bb));
}

static const struct {
  const char* name;
  double (*of)(const pair_t* p);
} algorithms[] = {{"l0", l0}, {"l1", l1}, {"l2", l2}, {"lInf", max}, {"cos", cosine}};

static assay_status_t compare(const trt_job_t* j, const char* name, const pair_t* p) {
  const trt_options_t* o = j->options;
  const char* algorithm = trt_text(o, TRT_FLAG_accuracyAlgorithm);
  const double threshold = trt_number(o, TRT_FLAG_accuracyThreshold);
  double off = (double)NAN;
  for (size_t i = 0; i < sizeof algorithms / sizeof *algorithms; i++)
    if (strcmp(algorithms[i].name, algorithm) == 0) off = algorithms[i].of(p);
  trt_info("Accuracy of output %s: %s = %g (threshold %g)", name, algorithm, off, threshold);
  return off <= threshold
             ? NULL
             : ASSAY_ERROR(ASSAY_INVALID_ARGUMENT,
                           "output '%s' is too far from its reference: %s = %g is above the "
                           "threshold of %g",
                           name, algorithm, off, threshold);
}

static assay_status_t check_output(const trt_job_t* j, const trt_item_t* item, size_t i,
                                   assay_context_t* c) {
  const assay_io_t* io = assay_engine_output(j->engine, i);
  assay_tensor_t *got = assay_context_output(c, i), *file = NULL, *a = NULL, *b = NULL;
  assay_status_t st = NULL;
  if (!got || got->kind != ASSAY_KIND_TENSOR || got->type == ASSAY_TYPE_STRING ||
      assay_type_store(got->type) == ASSAY_STORE_C128)
    st = ASSAY_ERROR(ASSAY_UNSUPPORTED,
                     "--loadRefOutputs: output '%s' is not a tensor of real numbers",
                     assay_io_name(io));
  const trt_source_t from = {"--loadRefOutputs", "output", item->value, trt_layout_of(j, io, true)};
  if (!st) st = trt_read_file(&from, io, got->rank, got->dims, &file);
  if (!st) st = assay_tensor_widen(got, &a);
  if (!st) st = assay_tensor_widen(file, &b);
  const pair_t p = {a, b, trt_number(j->options, TRT_FLAG_atol),
                    trt_number(j->options, TRT_FLAG_rtol)};
  if (!st) st = compare(j, assay_io_name(io), &p);
  assay_tensor_release(got);
  assay_tensor_release(file);
  assay_tensor_release(a);
  assay_tensor_release(b);
  return st;
}

// The outputs of a context's last run against a list of files.
static assay_status_t check_list(const trt_job_t* j, const char* list, assay_context_t* c) {
  trt_item_t* items = NULL;
  size_t n = 0;
  ASSAY_TRY(trt_items_parse(j->arena, "--loadRefOutputs", list, &items, &n));
  for (size_t k = 0; k < n; k++) {
    bool known = false;
    ASSAY_TRY(trt_name_check("--loadRefOutputs", items[k].name));
    for (size_t i = 0; i < trt_output_count(j); i++)
      known |= trt_name_matches(items[k].name, assay_io_name(assay_engine_output(j->engine, i)));
    if (!known)
      return ASSAY_ERROR(ASSAY_NOT_FOUND, "--loadRefOutputs: the model has no output '%s'",
                         items[k].name);
  }
  for (size_t i = 0; i < trt_output_count(j); i++) {
    const trt_item_t* item =
        trt_file_of(items, n, assay_io_name(assay_engine_output(j->engine, i)));
    if (item) ASSAY_TRY(check_output(j, item, i, c));
  }
  return NULL;
}

static assay_status_t check_pair(const trt_job_t* j, const trt_pair_text_t* p, assay_context_t* c) {
  trt_inputs_t in = {0};
  assay_status_t st = trt_inputs_make(j, p->inputs, &in);
  for (size_t i = 0; !st && i < in.n; i++) st = assay_context_set_input(c, i, in.tensors[i]);
  if (!st) st = assay_context_run(c);
  if (!st) st = check_list(j, p->outputs, c);
  trt_inputs_deinit(&in);
  return assay_status_note(st, "--refPair=%lld", (long long)p->index);
}

assay_status_t trt_check_reference(const trt_job_t* j, assay_context_t* c) {
  const trt_options_t* o = j->options;
  if (!trt_given(o, TRT_FLAG_loadRefOutputs)) return NULL;
  assay_status_t st = check_list(j, trt_text(o, TRT_FLAG_loadRefOutputs), c);
  if (st && o->n_pairs) return assay_status_note(st, "--refPair=0");
  for (size_t i = 1; !st && i < o->n_pairs; i++) st = check_pair(j, &o->pairs[i], c);
  return st;
}
