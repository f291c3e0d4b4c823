// Certificates: what is written is read, what is damaged is refused, faults are found where they
// are, sound engines hold, proven decisions are, and failed allocations are told.
#include "base/random.h"
#include "certify/certify.h"
#include "certify/observe.h"
#include "certify/reach.h"
#include "certify/verify.h"
#include "passes/graph_case.h"

static const graph_case_t network = {
    "network",
    17,
    {"x float[2,4,8,8]"},
    {"w float[6,4,3,3]", "b float[6]", "s float[6] positive", "o float[6]", "m float[6]",
     "v float[6] positive", "k float[] 1.7", "weights float[12,12]"},
    {"Conv conv x w b -> c | pads=1,1,1,1", "BatchNormalization bn c s o m v -> n",
     "Sigmoid sig n -> e", "Mul mul n e -> p", "Sub sub p k -> q", "LeakyRelu leaky q -> l",
     "Transpose turn l -> t | perm=0,2,3,1", "ReduceMean mean t -> r | axes=1,2 keepdims=0",
     "Concat join r r -> j | axis=1", "MatMul fc j weights -> y0", "Softmax soft y0 -> y"},
    "y"};

// The same names, another network.
static const graph_case_t other_network = {
    "network",
    17,
    {"x float[2,4,8,8]"},
    {"w float[6,4,3,3]", "b float[6]", "s float[6] positive", "o float[6]", "m float[6]",
     "v float[6] positive", "k float[] 1.7", "weights float[12,12]"},
    {"Conv conv x w b -> c | pads=1,1,1,1", "BatchNormalization bn c s o m v -> n",
     "Sigmoid sig n -> e", "Mul mul n e -> p", "Sub sub p k -> q",
     "LeakyRelu leaky q -> l | alpha=0.02", "Transpose turn l -> t | perm=0,2,3,1",
     "ReduceMean mean t -> r | axes=1,2 keepdims=0", "Concat join r r -> j | axis=1",
     "MatMul fc j weights -> y0", "Softmax soft y0 -> y"},
    "y"};

static const struct {
  const char *fault, *node;
} faults[] = {
    {"bn:set=epsilon=1e-3", "bn"},
    {"leaky:set=alpha=0.02", "leaky"},
    {"conv:set=pads=2,1,0,1", "conv"},
    {"sub:swap=0,1", "sub"},
    {"conv:scale=1,1.01", "conv"},
    {"bn:add=2,3,1", "bn"},
    {"conv:stale=1,2", "conv"},
    {"fc:enter=bf16", "fc"},
    {"fc:terms=1", "fc"},
    {"mean:terms=1", "mean"},
    {"fc:accumulate=bf16", "fc"},
    {"sig:store=bf16", "sig"},
    {"conv:tail=3", "conv"},
    {"turn:shift=1", "turn"},
    {"sig:op=Tanh", "sig"},
};
enum { N_FAULTS = sizeof faults / sizeof *faults };

// ---- a model, certified and verified -----------------------------------------------------------

typedef struct subject {
  assay_model_t* model;
  assay_tensor_t* in[GRAPH_CASE_ROWS];
  assay_samples_t samples;
} subject_t;

static void open_subject(const graph_case_t* g, subject_t* out) {
  memset(out, 0, sizeof *out);
  out->model = graph_case_model(g, out->in);
  out->samples = (assay_samples_t){.n = 1, .n_values = out->model->graph->n_inputs, .at = out->in};
}

static void close_subject(subject_t* s) {
  assay_model_release(s->model);
  graph_case_release(s->in);
}

typedef struct engine {
  assay_format_t format;
  const assay_backend_t* backend;
  bool fused;
} engine_t;

static assay_check_setting_t options_of(const engine_t* e, const char* inject) {
  return (assay_check_setting_t){.precision = {.format = e->format},
                                 .backend = e->backend,
                                 .plan = {.fused = e->fused, .inject = inject}};
}

static assay_status_t certify(const subject_t* s, const engine_t* e, assay_certificate_t* out) {
  const assay_check_setting_t o = options_of(e, NULL);
  const assay_certify_job_t job = {
      .model = s->model, .check = &o, .inputs = &s->samples, .precision = "test"};
  return assay_certify(&job, out);
}

// As a file: encoded, and read back.
static assay_status_t through_file(assay_certificate_t* c, size_t max, assay_certificate_t* out) {
  assay_str_t bytes = {0};
  assay_status_t st = assay_certificate_encode(c, max, &bytes);
  if (!st) st = assay_certificate_decode(bytes.text, bytes.len, out);
  assay_str_deinit(&bytes);
  return st;
}

static assay_status_t verify(const assay_certificate_t* c, const subject_t* s, const engine_t* e,
                             const char* inject, bool bits, assay_verified_t* out) {
  const assay_check_setting_t o = options_of(e, inject);
  const assay_verify_job_t job = {
      .model = s->model, .check = &o, .inputs = &s->samples, .bits = bits};
  return assay_certificate_verify(c, &job, out);
}

static const engine_t plain = {ASSAY_FORMAT_FP32, &assay_backend_emu, false};

// ---- sketches ----------------------------------------------------------------------------------

static void sketches_tell_how_far_tensors_are_apart(void** state) {
  (void)state;
  enum { N = 5000 };
  const int64_t dims[] = {N};
  assay_tensor_t *a = NULL, *b = NULL;
  op_case_ok(assay_tensor_create(ASSAY_TYPE_FLOAT, 1, dims, &a));
  op_case_ok(assay_tensor_create(ASSAY_TYPE_FLOAT, 1, dims, &b));
  uint64_t random = 3;
  for (double size = 1e-6; size < 10; size *= 10) {
    double norm2 = 0;
    for (int i = 0; i < N; i++) {
      assay_f64(a)[i] = graph_case_random(&random);
      const double d = size * graph_case_random(&random);
      assay_f64(b)[i] = assay_f64(a)[i] + d;
      norm2 += d * d;
    }
    assay_sketch_t x, y;
    assert_true(assay_sketch_of(a, &x) && assay_sketch_of(b, &y));
    const double ratio = assay_sketch_distance(&x, &y) / sqrt(norm2);
    if (!(ratio > 0.2 && ratio < 3))
      fail_msg("size %g: the distance is %g of what it is", size, ratio);
  }
  // One element off, NaN aside, two exchanged.
  assay_sketch_t x, y;
  assay_f64(b)[0] = assay_f64(a)[0] = (double)NAN;
  for (int i = 1; i < N; i++) assay_f64(b)[i] = assay_f64(a)[i];
  assert_true(assay_sketch_of(a, &x) && assay_sketch_of(b, &y));
  assert_true(assay_sketch_distance(&x, &y) == 0 && x.unfinite == 1 && x.size == N);
  assay_f64(b)[7] += 1;
  assert_true(assay_sketch_of(b, &y));
  assert_true(fabs(assay_sketch_distance(&x, &y) - 1) < 1e-9);
  assay_f64(b)[7] -= 1;
  assay_f64(b)[8] = assay_f64(a)[2000];
  assay_f64(b)[2000] = assay_f64(a)[8];
  assert_true(assay_sketch_of(b, &y));
  assert_true(assay_sketch_distance(&x, &y) > 0);
  assay_tensor_release(a);
  assay_tensor_release(b);
}

static void sizes_survive_their_byte(void** state) {
  (void)state;
  assert_int_equal(assay_size_code(0), 0);
  assert_true(assay_size_decode(0) == 0);
  assert_int_equal(assay_size_code((double)INFINITY), 255);
  for (double x = 1e-32; x < 1e43; x *= 1.37) {
    const double y = assay_size_decode(assay_size_code(x));
    if (!(y >= x && y < 2 * x)) fail_msg("%g becomes %g", x, y);
  }
  assert_int_equal(assay_size_code(1e44), 255);
  assert_int_equal(assay_size_code(1e-300), 1);
  for (int c = 1; c < 256; c++) assert_int_equal(assay_size_code(assay_size_decode((uint8_t)c)), c);
}

// ---- the file ----------------------------------------------------------------------------------

// As many values as a deep network has, none of them real.
static void make_large(assay_certificate_t* c, size_t n) {
  *c = (assay_certificate_t){
      .n_values = n, .model = 7, .model_bytes = 1000, .given = true, .inputs = 9};
  op_case_ok(assay_new_array(n, sizeof *c->values, &c->values));
  op_case_ok(assay_new_array(1, sizeof *c->decisions, &c->decisions));
  assay_decisions_t* d = c->decisions;
  c->n_decisions = 1;
  *d = (assay_decisions_t){.n = 3, .choices = 5, .count = {0, 2, 1}};
  op_case_ok(assay_new_array(3, 1, &d->grades));
  d->grades[0] = d->grades[1] = 1;
  d->grades[2] = 2;
  for (size_t i = 0; i < n; i++) {
    assay_certified_value_t* v = &c->values[i];
    *v = (assay_certified_value_t){.name = (uint16_t)(i * 31),
                                   .step = (uint8_t)(i + 3),
                                   .bound = 4,
                                   .bits = (uint32_t)(i * 2654435761u)};
    v->sketch[0] = i % 2 ? (int64_t)i * 1000003 : -(int64_t)i * 77;
    v->sketch[1] = INT64_MIN + (int64_t)i;
    v->sketch[2] = INT64_MAX;
    v->sketch[3] = -1;
    if (i % 50 == 7) v->odd = ASSAY_ODD_ENGINE;
  }
}

static void check_same(const assay_certificate_t* a, const assay_certificate_t* b, size_t max) {
  assert_int_equal(a->n_values, b->n_values);
  assert_true(a->inputs == b->inputs && a->model == b->model && a->given == b->given);
  assert_memory_equal(&a->form.stride, &b->form.stride, sizeof a->form.stride);
  const uint32_t mask = a->form.bits_bytes ? UINT32_MAX >> (32 - 8 * a->form.bits_bytes) : 0;
  for (size_t i = 0; i < a->n_values; i++) {
    const assay_certified_value_t *x = &a->values[i], *y = &b->values[i];
    assert_int_equal(x->odd, y->odd);
    if (!assay_certificate_keeps(b, i)) continue;
    for (int j = 0; j < b->form.sketches; j++)
      if (x->sketch[j] != y->sketch[j]) fail_msg("%zu bytes: sketch %d of value %zu", max, j, i);
    assert_int_equal(x->step, y->step);
    assert_int_equal(x->bits & mask, y->bits);
    if (b->form.names) assert_int_equal(x->name, y->name);
  }
  assert_int_equal(b->n_decisions, 1);
  assert_int_equal(b->decisions[0].n, 3);
  for (int g = 0; g < 3; g++) assert_int_equal(a->decisions[0].count[g], b->decisions[0].count[g]);
}

static void what_is_written_is_read_in_every_form(void** state) {
  (void)state;
  enum { N = 300 };
  size_t last = SIZE_MAX;
  for (size_t max = 20000; max >= 10; max = max * 2 / 3) {
    assay_certificate_t c, back;
    assay_str_t bytes = {0};
    make_large(&c, N);
    op_case_ok(assay_certificate_encode(&c, max, &bytes));
    if (bytes.len > max && c.form.stride < N)
      fail_msg("%zu bytes where %zu are allowed", bytes.len, max);
    assert_true(bytes.len <= last);
    last = bytes.len;
    op_case_ok(assay_certificate_decode(bytes.text, bytes.len, &back));
    check_same(&c, &back, max);
    assert_true(assay_certificate_keeps(&back, N - 1));
    assay_certificate_deinit(&back);
    assay_certificate_deinit(&c);
    assay_str_deinit(&bytes);
  }
  assert_true(last < 150);
}

// Decodes bytes that may be anything: a status or a certificate, and nothing is left behind.
static void try_bytes(const char* bytes, size_t n, bool must_fail, const char* what, size_t at) {
  const int64_t live = assay_alloc_live();
  assay_certificate_t c;
  assay_status_t st = assay_certificate_decode(bytes, n, &c);
  const assay_code_t code = assay_status_code(st);
  if (must_fail && !st) fail_msg("%s at %zu is taken for a certificate", what, at);
  if (st && code != ASSAY_CORRUPT) fail_msg("%s at %zu: %s", what, at, assay_status_message(st));
  if (!st) assay_certificate_deinit(&c);
  assay_status_free(st);
  assert_int_equal(assay_alloc_live() - live, 0);
}

static void damaged_files_are_refused(void** state) {
  (void)state;
  assay_certificate_t c;
  assay_str_t bytes = {0};
  make_large(&c, 40);
  op_case_ok(assay_certificate_encode(&c, 900, &bytes));
  const size_t n = bytes.len;
  char* copy = NULL;
  op_case_ok(assay_new_array(n + 1, 1, &copy));
  for (size_t i = 0; i < n; i++) {
    memcpy(copy, bytes.text, n);
    try_bytes(copy, i, true, "a cut", i);
    copy[i] = (char)(copy[i] ^ 1 << i % 8);
    try_bytes(copy, n, true, "a flipped bit", i);
    // With a checksum that fits, what it says still has to make sense, or it is another
    // certificate.
    memcpy(copy, bytes.text, i);
    assay_certificate_seal(copy, i);
    try_bytes(copy, i, true, "a sealed cut", i);
    for (int k = 0; k < 8 && i > 12; k++) {
      static const unsigned char others[] = {0, 1, 0x7f, 0x80, 0xff, 0xfe, 0x40, 0x20};
      memcpy(copy, bytes.text, n);
      copy[i] = (char)others[k];
      assay_certificate_seal(copy, n);
      try_bytes(copy, n, false, "a sealed byte", i);
    }
  }
  // One byte too many.
  memcpy(copy, bytes.text, n);
  copy[n] = 0;
  assay_certificate_seal(copy, n + 1);
  try_bytes(copy, n + 1, true, "a byte more", n);
  assay_free(copy);
  assay_str_deinit(&bytes);
  assay_certificate_deinit(&c);
}

// Several bytes at once, drawn by a seed.
static void no_bytes_crash_the_reader(void** state) {
  (void)state;
  enum { ROUNDS = 20000 };
  assay_certificate_t c;
  assay_str_t bytes = {0};
  make_large(&c, 40);
  op_case_ok(assay_certificate_encode(&c, 900, &bytes));
  const assay_random_t r = assay_random_make(11, "certificate", 0);
  printf("seed 11\n");
  char* copy = NULL;
  op_case_ok(assay_new_array(bytes.len, 1, &copy));
  for (uint64_t round = 0; round < ROUNDS; round++) {
    memcpy(copy, bytes.text, bytes.len);
    for (uint64_t k = 0; k < 4; k++) {
      const double at = assay_random_uniform(&r, round * 8 + 2 * k);
      // Mostly in the head, which has the sizes.
      const size_t range = k % 2 ? bytes.len : 80;
      copy[13 + (size_t)(at * (double)(range - 13))] =
          (char)(int)(256 * assay_random_uniform(&r, round * 8 + 2 * k + 1));
    }
    assay_certificate_seal(copy, bytes.len);
    try_bytes(copy, bytes.len, false, "drawn bytes", (size_t)round);
  }
  assay_free(copy);
  assay_str_deinit(&bytes);
  assay_certificate_deinit(&c);
}

// ---- engines -----------------------------------------------------------------------------------

static void sound_engines_hold(void** state) {
  (void)state;
  static const assay_format_t formats[] = {ASSAY_FORMAT_FP32, ASSAY_FORMAT_FP16, ASSAY_FORMAT_BF16};
  subject_t s;
  open_subject(&network, &s);
  for (int f = 0; f < 3; f++) {
    const engine_t certified = {formats[f], &assay_backend_emu, false};
    assay_certificate_t made, c;
    op_case_ok(certify(&s, &certified, &made));
    op_case_ok(through_file(&made, 4096, &c));
    for (int way = 0; way < 4; way++) {
      const engine_t e = {formats[f], way < 2 ? &assay_backend_emu : &assay_backend_cpu, way % 2};
      assay_verified_t v;
      op_case_ok(verify(&c, &s, &e, NULL, way == 0, &v));
      if (!v.holds)
        fail_msg("format %d, engine %d: %s: %s", f, way, assay_change_name(v.guilty->what),
                 v.guilty->why);
      assert_int_equal(v.n_compared, 11);
      assert_int_equal(v.n_bits, way == 0 ? 11 : 0);
      assert_int_equal(v.same_bits, v.n_bits);
      assert_int_equal(v.n_decisions, 1);
      assert_true(v.decisions[0].compared && v.decisions[0].n == 2 &&
                  !v.decisions[0].flipped_stable);
      assay_verified_deinit(&v);
    }
    assay_certificate_deinit(&c);
    assay_certificate_deinit(&made);
  }
  close_subject(&s);
}

static bool names(const assay_change_found_t* f, const char* node) {
  for (size_t i = 0; i < f->n_nodes; i++)
    if (strcmp(f->nodes[i]->label, node) == 0) return true;
  return f->node && strcmp(f->node->label, node) == 0;
}

// By its layer's account, and by its bits, also where only every second value's are kept.
static void faults_are_found_where_they_are(void** state) {
  (void)state;
  subject_t s;
  open_subject(&network, &s);
  for (int fused = 0; fused < 2; fused++) {
    const engine_t e = {ASSAY_FORMAT_FP32, &assay_backend_emu, fused};
    assay_certificate_t made, c;
    op_case_ok(certify(&s, &e, &made));
    op_case_ok(through_file(&made, 4096, &c));
    for (size_t i = 0; i < N_FAULTS; i++) {
      for (int bits = 0; bits < 2; bits++) {
        assay_verified_t v;
        assay_status_t st = verify(&c, &s, &e, faults[i].fault, bits, &v);
        // Passes take some of the nodes away.
        if (st && fused) {
          assay_status_free(st);
          continue;
        }
        op_case_ok(st);
        if (v.holds || !names(v.guilty, faults[i].node))
          fail_msg("'%s', fused %d, bits %d: %s", faults[i].fault, fused, bits,
                   v.holds          ? "holds"
                   : v.guilty->node ? v.guilty->node->label
                                    : v.guilty->why);
        assay_verified_deinit(&v);
      }
    }
    assay_certificate_deinit(&c);
    assay_certificate_deinit(&made);
  }
  close_subject(&s);
}

// A fault below rounding has no defect to show, but other bits.
static void bits_tell_what_rounding_hides(void** state) {
  (void)state;
  subject_t s;
  open_subject(&network, &s);
  assay_certificate_t made, c;
  op_case_ok(certify(&s, &plain, &made));
  op_case_ok(through_file(&made, 4096, &c));
  assay_verified_t v;
  op_case_ok(verify(&c, &s, &plain, "mul:add=0,0,0.0000003", false, &v));
  assert_true(v.holds || v.guilty->what == ASSAY_CHANGE_FAULT);
  assay_verified_deinit(&v);
  op_case_ok(verify(&c, &s, &plain, "sig:round=zero", true, &v));
  assert_false(v.holds);
  assert_true(names(v.guilty, "sig"));
  assert_true(v.same_bits < v.n_bits);
  assay_verified_deinit(&v);
  // Another engine's cannot be compared.
  const engine_t cpu = {ASSAY_FORMAT_FP32, &assay_backend_cpu, true};
  assay_status_t st = verify(&c, &s, &cpu, NULL, true, &v);
  assert_int_equal(assay_status_code(st), ASSAY_INVALID_ARGUMENT);
  assay_status_free(st);
  assay_certificate_deinit(&c);
  assay_certificate_deinit(&made);
  close_subject(&s);
}

// Values past the format's range and near float32's: what the engine makes infinite was so when it
// was certified.
static const graph_case_t masked = {
    "masked",
    17,
    {"x float[4,64]", "m bool[4,64]"},
    {"low float[] -3.4028234663852886e38", "k float[64,8]"},
    {"Where mask m x low -> w", "Softmax soft w -> s", "MatMul mix s k -> y"},
    "y"};

static void what_overflowed_already_is_no_change(void** state) {
  (void)state;
  subject_t s;
  open_subject(&masked, &s);
  for (int64_t i = 0; i < s.in[1]->size; i++) assay_i64(s.in[1])[i] = i % 3 != 0;
  const engine_t half = {ASSAY_FORMAT_FP16, &assay_backend_emu, false};
  assay_certificate_t made, c;
  op_case_ok(certify(&s, &half, &made));
  assert_true(made.values[0].odd & ASSAY_ODD_ENGINE);
  op_case_ok(through_file(&made, 4096, &c));
  assay_verified_t v;
  op_case_ok(verify(&c, &s, &half, NULL, true, &v));
  if (!v.holds) fail_msg("%s: %s", assay_change_name(v.guilty->what), v.guilty->why);
  assay_verified_deinit(&v);
  assay_certificate_deinit(&c);
  assay_certificate_deinit(&made);
  close_subject(&s);
}

// The same names and another attribute: truth tells the node.
static void another_model_is_told_from_truth(void** state) {
  (void)state;
  subject_t s, other;
  open_subject(&network, &s);
  open_subject(&other_network, &other);
  for (size_t max = 4096; max > 100; max /= 4) {
    assay_certificate_t made, c;
    op_case_ok(certify(&s, &plain, &made));
    op_case_ok(through_file(&made, max, &c));
    assay_verified_t v;
    op_case_ok(verify(&c, &other, &plain, NULL, false, &v));
    assert_false(v.holds);
    assert_int_equal(v.guilty->what, ASSAY_CHANGE_TRUTH);
    // With few values kept it is the first kept one behind the node, since the last one before.
    if (c.form.stride == 1)
      assert_true(names(v.guilty, "leaky") && !v.guilty->since);
    else
      assert_non_null(v.guilty->since);
    assay_verified_deinit(&v);
    assay_certificate_deinit(&c);
    assay_certificate_deinit(&made);
  }
  close_subject(&s);
  close_subject(&other);
}

// ---- decisions ---------------------------------------------------------------------------------

static double excess(const assay_tensor_t* engine, const assay_tensor_t* truth,
                     const assay_tensor_t* limits) {
  double worst = 0;
  for (int64_t i = 0; i < truth->size; i++) {
    const double off = fabs(assay_f64(engine)[i] - assay_f64(truth)[i]);
    const double limit = limits ? assay_f64(limits)[i] : 0;
    if (!(off <= limit)) worst = fmax(worst, off - limit);
  }
  return worst;
}

// No engine's output passes the bounds that are carried through the network; and they are finite.
static void no_engine_passes_its_reach(void** state) {
  (void)state;
  static const assay_format_t formats[] = {ASSAY_FORMAT_FP32, ASSAY_FORMAT_FP16, ASSAY_FORMAT_BF16};
  subject_t s;
  open_subject(&network, &s);
  for (int f = 0; f < 3; f++) {
    const assay_precision_t p = {.format = formats[f]};
    assay_plan_t* nodes = NULL;
    assay_reach_t* reach = NULL;
    assay_tensor_t* truth[1] = {NULL};
    assay_evaluator_t* evaluator = NULL;
    const assay_evaluator_config_t config = {.mode = ASSAY_MODE_TRUTH};
    op_case_ok(assay_plan_create(s.model, &p, NULL, 0, &nodes));
    op_case_ok(assay_reach_create(nodes, false, &reach));
    op_case_ok(assay_reach_run(reach, s.in));
    op_case_ok(assay_evaluator_create(s.model, &config, &evaluator));
    op_case_ok(assay_truth_outputs(evaluator, s.model->graph, s.in, truth));
    const assay_tensor_t* limits = assay_reach_output(reach, 0);
    assert_non_null(limits);
    for (int64_t i = 0; f == 0 && i < limits->size; i++) assert_true(assay_f64(limits)[i] < 1e-2);
    double nearest[2] = {0};
    int other = 0;
    for (uint64_t draws = 0; draws < 12; draws++) {
      const assay_plan_options_t o = {.fused = draws % 2, .draws = draws / 2};
      assay_plan_t* plan = NULL;
      void* run = NULL;
      assay_tensor_t* out[1] = {NULL};
      op_case_ok(assay_plan_create(s.model, &p, &o, 0, &plan));
      op_case_ok(assay_outputs_of(plan, &assay_backend_emu, &run, s.in, out));
      double error = 0;
      for (int64_t i = 0; i < out[0]->size; i++)
        error += fabs(assay_f64(out[0])[i] - assay_f64(truth[0])[i]);
      if (draws < 2) nearest[draws] = error;
      other += draws >= 2 && error > 0 && error != nearest[draws % 2];
      const double by = excess(out[0], truth[0], limits);
      if (by > 0)
        fail_msg("format %d, draws %d: an output passes its reach by %g", f, (int)draws, by);
      assay_backend_emu.close(run);
      assay_tensor_release(out[0]);
      assay_plan_destroy(plan);
    }
    if (other < 8) fail_msg("format %d: only %d of 10 draws round otherwise", f, other);
    assay_tensor_release(truth[0]);
    assay_evaluator_destroy(evaluator);
    assay_reach_destroy(reach);
    assay_plan_destroy(nodes);
  }
  close_subject(&s);
}

// Scores whose first column leads by a known margin.
static const graph_case_t scores = {
    "scores",
    17,
    {"x float[5,3] 1 0 0 1.0001 1 0 1.00000012 1 0 2 1 1 0.5 0.5 0"},
    {"k float[] 1.3"},
    {"Mul mul x k -> y"},
    "y"};

static void margins_grade_decisions(void** state) {
  (void)state;
  // In fp16 the second and third row's margins are lost; the last one's is none.
  static const assay_grade_t in_fp32[] = {2, 2, 0, 2, 0}, in_fp16[] = {2, 0, 0, 2, 0};
  subject_t s;
  open_subject(&scores, &s);
  for (int half = 0; half < 2; half++) {
    const engine_t e = {half ? ASSAY_FORMAT_FP16 : ASSAY_FORMAT_FP32, &assay_backend_emu, false};
    assay_certificate_t c;
    op_case_ok(certify(&s, &e, &c));
    assert_int_equal(c.n_decisions, 1);
    assert_int_equal(c.decisions[0].n, 5);
    for (int i = 0; i < 5; i++) {
      const unsigned want = half ? in_fp16[i] : in_fp32[i];
      if (c.decisions[0].grades[i] != want)
        fail_msg("fp16 %d: row %d has grade %u, not %u", half, i, c.decisions[0].grades[i], want);
    }
    assay_certificate_deinit(&c);
  }
  close_subject(&s);
}

static void thresholds_are_parsed(void** state) {
  (void)state;
  static const char* const wrong[] = {"y", ":1", "y:", "y:x", "z:1", "y:nan", "y:1e999", "y:1 "};
  subject_t s;
  open_subject(&scores, &s);
  assay_decision_request_t* r = NULL;
  size_t n = 0;
  for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
    assay_status_t st = assay_decisions_ask(s.model, 1, &wrong[i], &r, &n);
    if (assay_status_code(st) != ASSAY_INVALID_ARGUMENT) fail_msg("'%s' is taken", wrong[i]);
    assay_status_free(st);
  }
  const char* right = "y:0.65";
  op_case_ok(assay_decisions_ask(s.model, 1, &right, &r, &n));
  assert_int_equal(n, 1);
  assert_true(r[0].kind == ASSAY_DECISION_THRESHOLD && r[0].threshold == 0.65);
  assay_free(r);
  const assay_check_setting_t o = options_of(&plain, NULL);
  const assay_certify_job_t job = {
      .model = s.model, .check = &o, .inputs = &s.samples, .thresholds = &right, .n_thresholds = 1};
  assay_certificate_t c;
  op_case_ok(assay_certify(&job, &c));
  assert_int_equal(c.decisions[0].n, 15);
  assert_int_equal(c.decisions[0].count[ASSAY_GRADE_OPEN], 2);  // 1.3 / 2 is on it
  assay_certificate_deinit(&c);
  close_subject(&s);
}

// ---- memory ------------------------------------------------------------------------------------

static assay_status_t all_of_it(const subject_t* s) {
  assay_certificate_t made = {0}, c = {0};
  assay_verified_t v = {0};
  assay_status_t st = certify(s, &plain, &made);
  if (!st) st = through_file(&made, 700, &c);
  if (!st) st = verify(&c, s, &plain, "fc:terms=1", true, &v);
  assay_verified_deinit(&v);
  assay_certificate_deinit(&c);
  assay_certificate_deinit(&made);
  return st;
}

static void failed_allocations_are_told(void** state) {
  (void)state;
  enum { RUNS = 400 };
  subject_t s;
  open_subject(&network, &s);
  op_case_ok(all_of_it(&s));
  assay_alloc_fail_after(0, false);
  op_case_ok(all_of_it(&s));
  const uint64_t total = assay_alloc_fail_after(0, false);
  const assay_random_t r = assay_random_make(5, "allocations", 0);
  printf("seed 5, %llu allocations\n", (unsigned long long)total);
  const bool full = getenv("ASSAY_FULL");  // all of them
  for (uint64_t i = 0; i < (full ? total : RUNS); i++) {
    const uint64_t nth =
        full || i < RUNS / 4 ? i + 1 : 1 + (uint64_t)(assay_random_uniform(&r, i) * (double)total);
    const int64_t live = assay_alloc_live();
    assay_alloc_fail_after(nth, false);
    assay_status_t st = all_of_it(&s);
    assay_alloc_fail_after(0, false);
    // What was counted may come in another order with threads: some runs end before it.
    if (st && assay_status_code(st) != ASSAY_NO_MEMORY)
      fail_msg("allocation %llu: %s", (unsigned long long)nth, assay_status_message(st));
    assay_status_free(st);
    if (assay_alloc_live() != live)
      fail_msg("allocation %llu: %lld are not freed", (unsigned long long)nth,
               (long long)(assay_alloc_live() - live));
  }
  close_subject(&s);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(sketches_tell_how_far_tensors_are_apart),
      cmocka_unit_test(sizes_survive_their_byte),
      cmocka_unit_test(what_is_written_is_read_in_every_form),
      cmocka_unit_test(damaged_files_are_refused),
      cmocka_unit_test(no_bytes_crash_the_reader),
      cmocka_unit_test(sound_engines_hold),
      cmocka_unit_test(faults_are_found_where_they_are),
      cmocka_unit_test(bits_tell_what_rounding_hides),
      cmocka_unit_test(what_overflowed_already_is_no_change),
      cmocka_unit_test(another_model_is_told_from_truth),
      cmocka_unit_test(no_engine_passes_its_reach),
      cmocka_unit_test(margins_grade_decisions),
      cmocka_unit_test(thresholds_are_parsed),
      cmocka_unit_test(failed_allocations_are_told),
  };
  return cmocka_run_group_tests_name("certificates", tests, NULL, NULL);
}
