// Products and convolutions of split numbers: the same arithmetic with tiles, where the CPU has
// them, and without; against the emulated engine, with what comes behind them; what is not finite,
// huge or tiny; the same bits whatever the batch and the threads; and errors within their bounds
// and as the accuracy gate's model has them.
#include <float.h>

#include "account/account.h"
#include "backends/cpu/gemm/bf16_split_kernel.h"
#include "backends/tactic_case.h"
#include "base/alloc.h"
#include "seed_case.h"
#include "skip_case.h"

#define NO_TILES "no AMX here (its arithmetic runs in the other cases)"

// ---- the kernel ---------------------------------------------------------------------------------

enum { ALWAYS = CPU_BF16_SPLIT_IMITATED | CPU_BF16_SPLIT_ALWAYS };
enum { ROWS = CPU_BF16_SPLIT_ROWS, COLUMNS = CPU_BF16_SPLIT_COLUMNS, UNIT = CPU_BF16_SPLIT_UNIT };

static const cpu_range_t normal = {0x0c800000, 0x7e800000};  // 2^-102, 2^126

static double normal_number(uint64_t* state) {
  double sum = 0;
  for (int i = 0; i < 6; i++) sum += graph_case_random(state);
  return sum / sqrt(2);
}

static void* lines(size_t bytes) {
  void* p = aligned_alloc(64, (bytes + 63) / 64 * 64);
  assert_non_null(p);
  memset(p, 0, bytes);
  return p;
}

// Parts add up to the number; what is out of range is noticed, wherever it lies.
static void numbers_are_split(void** state) {
  (void)state;
  enum { N = 75 };
  static const struct {
    float x;
    bool in;
  } rows[] = {{0, true},
              {-0.0F, true},
              {1, true},
              {-3.1415927F, true},
              {0x1p-102F, true},
              {-0x1p-103F, false},
              {1e-40F, false},
              {0x1p126F, false},
              {FLT_MAX, false},
              {INFINITY, false},
              {-INFINITY, false},
              {NAN, false},
              {0x1.fffffep125F, true},
              {0x1.fffffep-103F, false},
              {FLT_MIN, false}};
  for (int parts = 2; parts <= 3; parts++)
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++)
      for (int at = 0; at < N; at += 37) {
        uint64_t seed = 5;
        float x[N];
        uint16_t* to = lines(3 * 3 * UNIT * sizeof *to);
        for (int i = 0; i < N; i++) x[i] = (float)normal_number(&seed);
        x[at] = rows[r].x;
        if (cpu_bf16_split_row(parts, N, x, normal, to) != rows[r].in)
          fail_msg("%g at %d is taken to be %s range", (double)rows[r].x, at,
                   rows[r].in ? "out of" : "in");
        for (int i = 0; i < 96 && rows[r].in; i++) {
          double sum = 0;
          for (int p = 0; p < parts; p++) {
            const uint32_t bits = (uint32_t)to[(i / UNIT * parts + p) * UNIT + i % UNIT] << 16;
            float part;
            memcpy(&part, &bits, sizeof part);
            sum += (double)part;
          }
          const double want = i < N ? (double)x[i] : 0;
          if (fabs(sum - want) > (parts == 2 ? 0x1p-16 * fabs(want) : 0))
            fail_msg("%d parts of %.9g add up to %.9g", parts, want, sum);
        }
        free(to);
      }
}

typedef struct operands {
  int parts;
  int64_t rows, units, pieces, step;
  char* a;
  uint16_t* panel;
  int64_t at[3];
  float* c;
} operands_t;

static operands_t draw_operands(int parts, int64_t rows, int64_t units, int64_t pieces) {
  uint64_t seed = 21;
  operands_t o = {.parts = parts, .rows = rows, .units = units, .pieces = pieces};
  float x[UNIT];
  uint16_t* line = lines(3 * UNIT * sizeof *line);
  o.step = (units * parts + 1) * 64;
  o.a = lines((size_t)((ROWS + 4) * o.step));
  o.panel = lines((size_t)(pieces * units * parts * UNIT * COLUMNS) * sizeof *o.panel);
  o.c = lines(ROWS * COLUMNS * sizeof *o.c);
  for (int64_t r = 0; r < ROWS + 4; r++)
    for (int64_t u = 0; u < units; u++) {
      for (int i = 0; i < UNIT; i++)
        x[i] = (float)(normal_number(&seed) * (i % 7 == 3 ? 0x1p-60 : 1));
      cpu_bf16_split_row(parts, UNIT, x, normal,
                         (uint16_t*)(void*)(o.a + r * o.step + u * parts * 64));
    }
  for (int64_t k = 0; k < pieces * units * UNIT; k++)
    for (int64_t j = 0; j < COLUMNS; j++) {
      x[0] = (float)(normal_number(&seed) * (k % 5 == 2 ? 0x1p-70 : 1));
      memset(x + 1, 0, sizeof x - sizeof *x);
      cpu_bf16_split_row(parts, UNIT, x, normal, line);
      for (int p = 0; p < parts; p++) o.panel[cpu_bf16_split_at(parts, p, k, j)] = line[p * UNIT];
    }
  for (int64_t p = 0; p < pieces; p++) o.at[p] = p * 2 * o.step;
  free(line);
  return o;
}

static void multiply(const operands_t* o, bool imitated) {
  cpu_bf16_split_state_t s;
  const cpu_bf16_split_block_t b = {.parts = o->parts,
                                    .rows = o->rows,
                                    .a = o->a,
                                    .step = o->step,
                                    .n_pieces = o->pieces,
                                    .pieces = o->at,
                                    .units = o->units,
                                    .panel = o->panel,
                                    .c = o->c,
                                    .c_step = COLUMNS};
  cpu_bf16_split_set_mode(imitated ? CPU_BF16_SPLIT_IMITATED : 0);
  cpu_bf16_split_begin(&s);
  cpu_bf16_split_multiply(&b);
  cpu_bf16_split_end(&s);
  cpu_bf16_split_set_mode(ALWAYS);
}

static void tiles_are_imitated_to_the_bit(void** state) {
  (void)state;
  if (!cpu_bf16_split_has_tiles()) skip_because(NO_TILES);
  for (int parts = 2; parts <= 3; parts++)
    for (int64_t rows = 1; rows <= ROWS; rows += 6)
      for (int64_t pieces = 1; pieces <= 3; pieces++) {
        operands_t o = draw_operands(parts, rows, pieces == 3 ? 1 : 4, pieces);
        float* want = lines(ROWS * COLUMNS * sizeof *want);
        multiply(&o, true);
        memcpy(want, o.c, ROWS * COLUMNS * sizeof *want);
        multiply(&o, false);
        if (memcmp(want, o.c, (size_t)(rows * COLUMNS) * sizeof *want) != 0)
          fail_msg("%d parts, %d rows, %d pieces: tiles give other bits", parts, (int)rows,
                   (int)pieces);
        free(want);
        free(o.a);
        free(o.panel);
        free(o.c);
      }
}

// ---- layers -------------------------------------------------------------------------------------

#define ROW(...) \
  { {__VA_ARGS__, "y"}, NULL, 1e-5, false }

static const tactic_case_t layers[] = {
    ROW("a product of three dimensions", 17, {"x float[2,50,96]"}, {"w float[96,80]"},
        {"MatMul n x w -> y"}),
    ROW("uneven sizes, a bias and Gelu", 17, {"x float[3,67,45]"},
        {"w float[45,99]", "b float[99]"},
        {"MatMul n x w -> h", "Add a h b -> s", "Sigmoid r s -> y"}),
    ROW("places of an image", 17, {"x float[2,64,19,21]"}, {"w float[70,64,1,1]", "b float[70]"},
        {"Conv n x w b -> h", "Relu r h -> y"}),
    ROW("some places of an image", 17, {"x float[2,64,23,22]"}, {"w float[96,64,1,1]"},
        {"Conv n x w -> y | strides=2,2"}),
    ROW("a kernel of nine places", 17, {"x float[2,64,21,20]"},
        {"w float[96,64,3,3]", "b float[96]"},
        {"Conv n x w b -> h | pads=1,1,1,1", "Relu r h -> y"}),
    ROW("no padding", 17, {"x float[1,32,30,33]"}, {"w float[32,32,3,3]"}, {"Conv n x w -> y"}),
    ROW("uneven pads", 17, {"x float[2,40,17,31]"}, {"w float[64,40,3,3]", "b float[64]"},
        {"Conv n x w b -> y | pads=2,0,1,3"}),
    ROW("more behind than before", 17, {"x float[2,40,17,14]"}, {"w float[64,40,3,3]"},
        {"Conv n x w -> y | pads=0,0,2,2"}),
    ROW("strides", 17, {"x float[2,64,29,30]"}, {"w float[64,64,3,3]", "b float[64]"},
        {"Conv n x w b -> y | pads=1,1,1,1 strides=2,2"}),
    ROW("strides of one axis", 17, {"x float[1,64,29,40]"}, {"w float[64,64,3,3]"},
        {"Conv n x w -> y | pads=1,1,1,1 strides=2,1"}),
    ROW("dilations", 17, {"x float[1,64,30,28]"}, {"w float[64,64,3,3]"},
        {"Conv n x w -> y | pads=2,3,2,3 dilations=2,3"}),
    ROW("a kernel of one line", 17, {"x float[1,32,9,200]"}, {"w float[64,32,1,7]"},
        {"Conv n x w -> y | pads=0,3,0,3"}),
    ROW("a residual sum", 17, {"x float[2,64,14,14]", "z float[2,64,14,14]"},
        {"w float[64,64,3,3]", "b float[64]"},
        {"Conv n x w b -> h | pads=1,1,1,1", "Add a h z -> s", "Relu r s -> y"}),
    ROW("many columns", 17, {"x float[1,200,13,12]"}, {"w float[210,200,3,3]"},
        {"Conv n x w -> h | pads=1,1,1,1", "Sigmoid r h -> y"}),
};

// Each of them is taken, so that what follows tests what it says.
static void layers_agree(void** state) {
  (void)state;
  static const char* const names[] = {"split_6", NULL, "split_3|split_6"};
  for (size_t i = 0; i < sizeof layers / sizeof *layers; i++) {
    for (int fp32 = 0; fp32 < 3; fp32 += 2) {
      tactic_case_t c = layers[i];
      assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
      assay_model_t* m = graph_case_model(&c.graph, in);
      tactic_run_t r;
      op_case_ok(tactic_case_try_in((assay_fp32_t)fp32, m, "cpu", ASSAY_FORMAT_FP32, in, &r));
      if (!tactic_case_is_by(r.tactic, names[fp32]))
        fail_msg("%s: by %s, not by %s", c.graph.name, r.tactic, names[fp32]);
      tactic_case_release(&r);
      graph_case_release(in);
      assay_model_release(m);
      if (fp32 == ASSAY_FP32_BOUND) c.tolerance *= 5;
      tactic_case_check_in((assay_fp32_t)fp32, &c);
    }
  }
}

static void layers_are_the_same_with_tiles(void** state) {
  (void)state;
  if (!cpu_bf16_split_has_tiles()) skip_because(NO_TILES);
  for (size_t i = 0; i < sizeof layers / sizeof *layers; i++)
    for (int fp32 = 0; fp32 < 3; fp32 += 2) {
      assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
      assay_model_t* m = graph_case_model(&layers[i].graph, in);
      tactic_run_t want, got;
      op_case_ok(tactic_case_try_in((assay_fp32_t)fp32, m, "cpu", ASSAY_FORMAT_FP32, in, &want));
      cpu_bf16_split_set_mode(CPU_BF16_SPLIT_ALWAYS);
      op_case_ok(tactic_case_try_in((assay_fp32_t)fp32, m, "cpu", ASSAY_FORMAT_FP32, in, &got));
      cpu_bf16_split_set_mode(ALWAYS);
      assert_string_equal(want.tactic, got.tactic);
      if (!tactic_case_identical(want.out[0], got.out[0]))
        fail_msg("%s by %s: tiles give other bits", layers[i].graph.name, got.tactic);
      tactic_case_release(&want);
      tactic_case_release(&got);
      graph_case_release(in);
      assay_model_release(m);
    }
}

// ---- a layer of drawn sizes ---------------------------------------------------------------------

typedef struct sizes {
  int64_t n, c, m, h, w, kernel, stride, pad;  // kernel 0: MatMul of [n, h * w, c]
} sizes_t;

typedef struct drawn {
  assay_model_t* model;
  assay_tensor_t* in[GRAPH_CASE_ROWS];
} drawn_t;

static drawn_t make(const sizes_t* s) {
  char x[80], w[80], b[80], node[120];
  if (s->kernel) {
    snprintf(x, sizeof x, "x float[%d,%d,%d,%d]", (int)s->n, (int)s->c, (int)s->h, (int)s->w);
    snprintf(w, sizeof w, "w float[%d,%d,%d,%d]", (int)s->m, (int)s->c, (int)s->kernel,
             (int)s->kernel);
    snprintf(node, sizeof node, "Conv n x w b -> y | pads=%d,%d,%d,%d strides=%d,%d", (int)s->pad,
             (int)s->pad, (int)s->pad, (int)s->pad, (int)s->stride, (int)s->stride);
  } else {
    snprintf(x, sizeof x, "x float[%d,%d,%d]", (int)s->n, (int)(s->h * s->w), (int)s->c);
    snprintf(w, sizeof w, "w float[%d,%d]", (int)s->c, (int)s->m);
    snprintf(node, sizeof node, "MatMul n x w -> h");
  }
  snprintf(b, sizeof b, "b float[%d]", (int)s->m);
  const graph_case_t image = {"drawn", 17, {x}, {w, b}, {node}, "y"};
  const graph_case_t matrix = {"drawn", 17, {x}, {w, b}, {node, "Add a h b -> y"}, "y"};
  drawn_t d = {0};
  d.model = graph_case_model(s->kernel ? &image : &matrix, d.in);
  return d;
}

static void release(drawn_t* d) {
  graph_case_release(d->in);
  assay_model_release(d->model);
}

static assay_tensor_t* constant(const drawn_t* d, bool bias) {
  const assay_node_t* n = d->model->graph->nodes[0];
  if (!bias) return n->inputs[1]->constant;
  return n->n_inputs > 2 ? n->inputs[2]->constant : d->model->graph->nodes[1]->inputs[1]->constant;
}

static void run_in(assay_fp32_t fp32, const drawn_t* d, tactic_run_t* r) {
  op_case_ok(tactic_case_try_in(fp32, d->model, "cpu", ASSAY_FORMAT_FP32, d->in, r));
}

static void check_name(const drawn_t* d, assay_fp32_t fp32, const char* name, bool by) {
  tactic_run_t r;
  run_in(fp32, d, &r);
  if (tactic_case_is_by(r.tactic, name) != by)
    fail_msg("by %s, and it should%s be %s", r.tactic, by ? "" : " not", name);
  tactic_case_release(&r);
}

// ---- accuracy gates
// -----------------------------------------------------------------------------------

static void serves_by_setting(void** state) {
  (void)state;
  drawn_t d = make(&(sizes_t){1, 512, 64, 12, 12, 0, 1, 0});
  check_name(&d, ASSAY_FP32_TIGHT, "split_6", true);
  check_name(&d, ASSAY_FP32_PLAIN, "split_", false);
  check_name(&d, ASSAY_FP32_BOUND, "split_3", true);
  cpu_bf16_split_set_mode(CPU_BF16_SPLIT_ALWAYS);
  check_name(&d, ASSAY_FP32_BOUND, "split_", cpu_bf16_split_has_tiles());
  cpu_bf16_split_set_mode(ALWAYS);
  release(&d);
}

static void check_refused(const char* what, const sizes_t* s, double weight, double scale,
                          assay_fp32_t fp32, const char* name, bool refused) {
  drawn_t d = make(s);
  assay_tensor_t* w = constant(&d, false);
  tactic_run_t r;
  for (int64_t k = 0; k < w->size; k++) assay_f64(w)[k] = (double)(float)(assay_f64(w)[k] * scale);
  if (weight != 0) assay_f64(w)[w->size / 3] = (double)(float)weight;
  run_in(fp32, &d, &r);
  if (tactic_case_is_by(r.tactic, name) == refused) fail_msg("%s: by %s", what, r.tactic);
  tactic_case_release(&r);
  release(&d);
}

// Short sums; weights that no parts hold, or that are so large or small that inputs have no range
// left. The first rows are what the others are beside.
static void gates_are_refused(void** state) {
  (void)state;
  static const sizes_t s = {1, 512, 64, 6, 6, 0, 1, 0}, few = {1, 12, 64, 6, 6, 0, 1, 0},
                       some = {1, 64, 64, 6, 6, 0, 1, 0};
  check_refused("long sums", &s, 0, 1, ASSAY_FP32_BOUND, "split_3", false);
  check_refused("short sums", &some, 0, 1, ASSAY_FP32_BOUND, "split_6", false);
  check_refused("short sums", &some, 0, 1, ASSAY_FP32_BOUND, "split_3", true);
  check_refused("few channels", &few, 0, 1, ASSAY_FP32_TIGHT, "split_", true);
  check_refused("a large weight", &s, 0x1p40, 1, ASSAY_FP32_TIGHT, "split_6", false);
  check_refused("an infinity", &s, INFINITY, 1, ASSAY_FP32_TIGHT, "split_", true);
  check_refused("NaN", &s, NAN, 1, ASSAY_FP32_TIGHT, "split_", true);
  check_refused("a subnormal", &s, 1e-40, 1, ASSAY_FP32_TIGHT, "split_", true);
  check_refused("huge weights", &s, 0, 0x1p70, ASSAY_FP32_TIGHT, "split_", true);
  check_refused("tiny weights", &s, 0, 0x1p-70, ASSAY_FP32_TIGHT, "split_", true);
}

// By the model of work: few rows, few columns, and a matrix each of whose rows may be a sample.
static void serves_where_it_pays(void** state) {
  (void)state;
  static const sizes_t rows = {1, 384, 768, 8, 16, 0, 1, 0},
                       few_rows = {4, 384, 768, 2, 4, 0, 1, 0},
                       few_columns = {1, 384, 32, 8, 16, 0, 1, 0};
  const graph_case_t matrix = {
      "a matrix", 17, {"x float[128,384]"}, {"w float[384,768]"}, {"MatMul n x w -> y"}, "y"};
  drawn_t d = {0};
  d.model = graph_case_model(&matrix, d.in);
  cpu_bf16_split_set_mode(CPU_BF16_SPLIT_IMITATED);
  check_refused("many rows", &rows, 0, 1, ASSAY_FP32_TIGHT, "split_6", false);
  check_refused("few rows", &few_rows, 0, 1, ASSAY_FP32_TIGHT, "split_", true);
  check_refused("few columns", &few_columns, 0, 1, ASSAY_FP32_TIGHT, "split_", true);
  check_name(&d, ASSAY_FP32_TIGHT, "split_", false);
  cpu_bf16_split_set_mode(ALWAYS);
  release(&d);
}

// ---- what is out of range -----------------------------------------------------------------------

static int class_of(double x) { return isnan(x) ? 1 : isinf(x) ? (x > 0 ? 2 : 3) : x == 0 ? 4 : 0; }

// Elements are compared beside the largest that is below `usual`.
static void compare_classes(const drawn_t* d, assay_fp32_t fp32, double usual, const char* what) {
  tactic_run_t want, got;
  run_in(ASSAY_FP32_PLAIN, d, &want);
  run_in(fp32, d, &got);
  assert_true(tactic_case_is_by(got.tactic, "split_"));
  double largest = 0;
  for (int64_t i = 0; i < want.out[0]->size; i++) {
    const double x = fabs(assay_f64(want.out[0])[i]);
    if (x < usual) largest = fmax(largest, x);
  }
  for (int64_t i = 0; i < want.out[0]->size; i++) {
    const double a = assay_f64(want.out[0])[i], b = assay_f64(got.out[0])[i];
    if (class_of(a) != class_of(b))
      fail_msg("%s, %s: element %lld is %g, plain's %g", what, got.tactic, (long long)i, b, a);
    if (class_of(a) == 0 && !(fabs(a - b) <= 3e-5 * fmax(fabs(a), largest)))
      fail_msg("%s, %s: element %lld is %.9g, plain's %.9g", what, got.tactic, (long long)i, b, a);
  }
  tactic_case_release(&want);
  tactic_case_release(&got);
}

static const sizes_t kinds[] = {
    {1, 200, 40, 9, 11, 0, 1, 0}, {1, 40, 40, 19, 22, 3, 1, 1}, {1, 70, 40, 17, 22, 3, 2, 1}};
enum { KINDS = sizeof kinds / sizeof *kinds };

static void specials_keep_their_class(void** state) {
  (void)state;
  static const double specials[] = {NAN,      INFINITY, -INFINITY, FLT_MAX, -FLT_MAX, 0x1p127,
                                    0x1p-149, -1e-40,   0x1p-126,  1e-35,   1e25,     -0.0};
  for (int kind = 0; kind < KINDS; kind++)
    for (size_t i = 0; i < sizeof specials / sizeof *specials; i++)
      // Each at one place, by turns, and beside another one.
      for (int at = (int)(i + (size_t)kind) % 4; at < 5; at = at < 4 ? 4 : 5) {
        drawn_t d = make(&kinds[kind]);
        double* x = assay_f64(d.in[0]);
        const int64_t size = d.in[0]->size;
        const int64_t places[] = {0, size - 1, size / 2, 7 * kinds[kind].w + 6, size / 3};
        char what[60];
        snprintf(what, sizeof what, "kind %d, %g at %d", kind, specials[i], at);
        x[places[at]] = specials[i];
        if (at == 4) x[places[at] + 9] = specials[(i + 1) % 2];
        compare_classes(&d, ASSAY_FP32_TIGHT, 1e20, what);
        compare_classes(&d, ASSAY_FP32_BOUND, 1e20, what);
        release(&d);
      }
}

// All numbers tiny or zero, windows of zeros, and all of one size that is out of range.
static void whole_inputs_out_of_range(void** state) {
  (void)state;
  static const double factors[] = {0, 1e-40, 1e-33, 0x1p-100, 1e30, 0x1p126};
  for (int kind = 0; kind < KINDS; kind++)
    for (size_t i = 0; i < sizeof factors / sizeof *factors; i++) {
      drawn_t d = make(&kinds[kind]);
      assay_tensor_t *b = constant(&d, true), *x = d.in[0];
      for (int64_t k = 0; k < b->size; k++) assay_f64(b)[k] = 0;
      for (int64_t k = 0; k < x->size; k++)
        assay_f64(x)[k] = k % 22 < 9 ? 0 : (double)(float)(assay_f64(x)[k] * factors[i]);
      // Sums past the range depend on their order: one term only.
      for (int64_t k = 0; factors[i] > 1e36 && k < x->size; k++)
        if (k != x->size / 2 + 10) assay_f64(x)[k] = 0;
      compare_classes(&d, ASSAY_FP32_TIGHT, INFINITY, "all");
      compare_classes(&d, ASSAY_FP32_BOUND, INFINITY, "all");
      release(&d);
    }
}

// ---- bits ---------------------------------------------------------------------------------------

static assay_tensor_t* sample(const assay_tensor_t* t, int64_t i) {
  int64_t dims[ASSAY_MAX_RANK];
  assay_tensor_t* part = NULL;
  memcpy(dims, t->dims, sizeof dims);
  dims[0] = 1;
  op_case_ok(assay_tensor_create(t->type, t->rank, dims, &part));
  memcpy(part->data, assay_f64(t) + i * part->size, (size_t)part->size * 8);
  return part;
}

// A sample by itself, among others, one of which holds what is not finite, and with any number of
// threads.
static void check_bits(const sizes_t* s, assay_fp32_t fp32) {
  drawn_t all = make(s);
  sizes_t one = *s;
  one.n = 1;
  drawn_t single = make(&one);
  tactic_run_t want, got;
  assay_f64(all.in[0])[17] = INFINITY;
  run_in(fp32, &all, &want);
  assert_true(tactic_case_is_by(want.tactic, "split_"));
  for (int threads = 1; threads <= 5; threads += 2)
    for (int64_t i = 0; i < s->n; i++) {
      assay_tensor_t* expected = sample(want.out[0], i);
      const int before = omp_get_max_threads();
      assay_tensor_release(single.in[0]);
      single.in[0] = sample(all.in[0], i);
      for (int bias = 0; bias < 2; bias++) {  // the model's constants are drawn anew
        const assay_tensor_t* from = constant(&all, bias);
        memcpy(constant(&single, bias)->data, from->data, (size_t)from->size * 8);
      }
      omp_set_num_threads(threads);
      run_in(fp32, &single, &got);
      omp_set_num_threads(before);
      if (!tactic_case_identical(expected, got.out[0]))
        fail_msg("%s with %d threads: sample %lld has other bits by itself", got.tactic, threads,
                 (long long)i);
      assay_tensor_release(expected);
      tactic_case_release(&got);
    }
  tactic_case_release(&want);
  release(&single);
  release(&all);
}

static void bits_depend_on_nothing_else(void** state) {
  (void)state;
  static const sizes_t sizes[] = {{5, 48, 48, 21, 20, 3, 1, 1},
                                  {3, 130, 100, 15, 13, 3, 2, 1},
                                  {4, 64, 40, 30, 31, 1, 1, 0},
                                  {4, 64, 40, 30, 31, 1, 2, 0},
                                  {7, 330, 70, 7, 8, 0, 1, 0}};
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
    check_bits(&sizes[i], ASSAY_FP32_TIGHT);
    check_bits(&sizes[i], ASSAY_FP32_BOUND);
  }
}

// ---- errors -------------------------------------------------------------------------------------

static int64_t draw(uint64_t* state, int64_t from, int64_t to) {
  return from + (int64_t)((graph_case_random(state) + 1) / 2 * (double)(to - from + 1));
}

typedef enum content { NORMAL, ONE_SIGN, OUTLIERS, SMALL, CONTENTS } content_t;

// OUTLIERS: one channel in 16 is 30 times as large.
static void fill(drawn_t* d, const sizes_t* s, content_t content, uint64_t* state) {
  assay_tensor_t* x = d->in[0];
  const int64_t places = s->h * s->w;
  for (int64_t i = 0; i < x->size; i++) {
    const int64_t channel = s->kernel ? i / places % s->c : i % s->c;
    double v = normal_number(state);
    if (content == ONE_SIGN) v = fabs(v);
    if (content == OUTLIERS && channel % 16 == 5) v *= 30;
    if (content == SMALL) v *= 0x1p-80;
    assay_f64(x)[i] = (double)(float)v;
  }
}

// No element passes its bound; the accuracy gate holds on these inputs, too; and the own error is
// what the model says.
static void check_account(const sizes_t* s, content_t content, assay_fp32_t fp32, uint64_t seed) {
  uint64_t state = seed;
  drawn_t d = make(s);
  assay_plan_t* plan = NULL;
  assay_account_t* a = NULL;
  const assay_precision_t precision = {.format = ASSAY_FORMAT_FP32};
  const assay_plan_options_t options = {.fused = true, .fp32 = fp32};
  const assay_account_options_t account = {0};
  fill(&d, s, content, &state);
  for (int64_t i = 0; i < s->m; i++) assay_f64(constant(&d, true))[i] = 0;
  op_case_ok(assay_plan_create(d.model, &precision, &options, 1, &plan));
  op_case_ok(assay_account_create(plan, assay_backend_find("cpu"), &account, &a));
  op_case_ok(assay_account_run(a, d.in));
  const assay_layer_account_t* l = assay_account_layer(a, 0);
  const assay_gated_t* gated = &l->gated;
  if (!gated->here || l->judged.beyond || l->verdict == ASSAY_VERDICT_DEFECT)
    fail_msg("seed %llu, setting %d, content %d: %lld elements past their bounds, %s",
             (unsigned long long)seed, (int)fp32, (int)content, (long long)l->judged.beyond,
             assay_verdict_name(l->verdict));
  const double model = gated->gate.own / gated->gate.plain;
  const double own = sqrt(gated->own2 / gated->plain2);
  print_message("  %s, %lld terms, content %d: own error %.3g of plain's, by the model %.3g\n",
                gated->gate.tactic, (long long)(s->c * (s->kernel ? s->kernel * s->kernel : 1)),
                (int)content, own, model);
  if ((content != OUTLIERS && !assay_gated_holds(gated)) || own > 1.5 * model ||
      (own < 0.3 * model && content != ONE_SIGN))
    fail_msg("seed %llu, setting %d, content %d: own error %.2g of plain's; by the model %.2g",
             (unsigned long long)seed, (int)fp32, (int)content, own, model);
  assay_account_destroy(a);
  assay_plan_destroy(plan);
  release(&d);
}

static void errors_are_within_bounds(void** state) {
  (void)state;
  uint64_t seed = test_seed();
  for (int i = 0; i < 32; i++) {
    const int64_t kernel = (int64_t[]){0, 1, 3, 3}[i / 4 % 4];
    const sizes_t s = {.n = draw(&seed, 1, 2),
                       .c = draw(&seed, 32, 64) * (kernel < 2 ? 7 : 2),
                       .m = draw(&seed, 40, 96),
                       .h = draw(&seed, 9, 14),
                       .w = draw(&seed, 9, 14),
                       .kernel = kernel,
                       .stride = 1 + i / 12 % 2,
                       .pad = kernel / 2};
    check_account(&s, (content_t)(i % CONTENTS), i % 8 < 4 ? ASSAY_FP32_BOUND : ASSAY_FP32_TIGHT,
                  seed);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(numbers_are_split),
                                     cmocka_unit_test(tiles_are_imitated_to_the_bit),
                                     cmocka_unit_test(layers_agree),
                                     cmocka_unit_test(layers_are_the_same_with_tiles),
                                     cmocka_unit_test(serves_by_setting),
                                     cmocka_unit_test(gates_are_refused),
                                     cmocka_unit_test(serves_where_it_pays),
                                     cmocka_unit_test(specials_keep_their_class),
                                     cmocka_unit_test(whole_inputs_out_of_range),
                                     cmocka_unit_test(bits_depend_on_nothing_else),
                                     cmocka_unit_test(errors_are_within_bounds)};
  cpu_bf16_split_set_mode(ALWAYS);
  return cmocka_run_group_tests(tests, NULL, NULL);
}
