// Products of one left side, whose sums become bytes by quantizers of their own, in one launch on a
// GPU that is not there (fake/): the bits of a launch each, and the layers that stay alone.
#include "base/shown.h"
#include "cuda/int8_case.h"
#include "cuda/pair_case.h"

typedef struct siblings_case {
  graph_case_t graph;
  int siblings;  // layers in the launch of an earlier one
  int joined;    // of a later one
} siblings_case_t;

static const pair_case_way_t apart = {.sources = "-int8_siblings,-attention_int8"}, any = {0};

#define NUMBERS                                                                                 \
  "xs float[] 0.0002", "xz uint8[] 131", "as float[] 0.05", "az int8[] -9", "bs float[] 0.011", \
      "bz int8[] 3", "cs float[] 0.2", "uz uint8[] 120", "e float[] 0.3"
// A product by weights w of so many scales.
#define PRODUCT(p, w, scales)                                                         \
  "DequantizeLinear d" p " x xs xz -> xf" p, "DequantizeLinear v" p " " w " " scales, \
      "MatMul m" p " xf" p " wf" p " -> " p
#define BY_COLUMN(p, s) s " -> wf" p " | axis=1"
#define BY_ONE(p) "s -> wf" p
// Its bytes, and what reads them, so that they are not what the caller gets.
#define QUANTIZED(p, scale, zero) "QuantizeLinear q" p " " p " " scale " " zero " -> b" p
#define BYTES(p, scale, zero) QUANTIZED(p, scale, zero), "Transpose t" p " b" p " -> y" p

static const siblings_case_t rows[] = {
    {{"queries, keys and values",
      21,
      {"x uint8[2,70,96]"},
      {NUMBERS, "w1 int8[96,160]", "s1 float[160] positive", "o1 float[160]", "w2 int8[96,160]",
       "s2 float[160] positive", "w3 int8[96,160]", "s float[] 0.7"},
      {PRODUCT("q", "w1", BY_COLUMN("q", "s1")), "Add aq q o1 -> qa", "Mul fq qa e -> qe",
       BYTES("qe", "as", "az"), PRODUCT("k", "w2", BY_COLUMN("k", "s2")), BYTES("k", "bs", "bz"),
       PRODUCT("v", "w3", BY_ONE("v")), BYTES("v", "cs", "az")},
      "yqe yk yv"},
     2,
     0},
    {{"odd rows, columns that are not alike, a limit, few terms",
      21,
      {"x uint8[37,48]"},
      {NUMBERS, "w1 int8[48,7]", "s1 float[7] positive", "w2 int8[48,130]", "s float[] 0.4"},
      {PRODUCT("q", "w1", BY_COLUMN("q", "s1")), "Relu r q -> qr", BYTES("qr", "as", "az"),
       PRODUCT("k", "w2", BY_ONE("k")), BYTES("k", "bs", "bz")},
      "yqr yk"},
     1,
     0},
    {{"not all of them: another type, a function, what the caller gets",
      21,
      {"x uint8[130,144]"},
      {NUMBERS, "s float[] 0.5", "w1 int8[144,40]", "w2 int8[144,24]", "w3 int8[144,56]",
       "w4 int8[144,8]", "w5 int8[144,20]"},
      {PRODUCT("q", "w1", BY_ONE("q")), BYTES("q", "as", "az"), PRODUCT("k", "w2", BY_ONE("k")),
       BYTES("k", "bs", "uz"), PRODUCT("v", "w3", BY_ONE("v")), "Tanh fv v -> vt",
       BYTES("vt", "cs", "az"), PRODUCT("u", "w4", BY_ONE("u")), QUANTIZED("u", "as", "az"),
       PRODUCT("g", "w5", BY_ONE("g")), BYTES("g", "cs", "bz")},
      "yq yk yvt bu yg"},
     1,
     0},
    {{"another left side",
      21,
      {"x uint8[33,64]", "z uint8[33,64]"},
      {NUMBERS, "s float[] 0.5", "w1 int8[64,40]", "w2 int8[64,24]"},
      {PRODUCT("q", "w1", BY_ONE("q")), BYTES("q", "as", "az"), "DequantizeLinear dk z xs xz -> xk",
       "DequantizeLinear vk w2 s -> wk", "MatMul mk xk wk -> k", BYTES("k", "bs", "bz")},
      "yq yk"},
     0,
     0},
    {{"one product that is taken apart, and attention",
      21,
      {"x uint8[2,21,48]"},
      {NUMBERS, "w1 int8[48,120]", "s1 float[120] positive", "o1 float[120]",
       "heads int64[5] 2 21 3 2 20", "first int64[1] 0", "ws float[] 0.0039", "wz uint8[] 3",
       "rows int64[3] 2 21 40"},
      {PRODUCT("p", "w1", BY_COLUMN("p", "s1")),
       "Add ap p o1 -> pa",
       "Reshape rp pa heads -> pr",
       "Transpose tp pr -> pt | perm=2,0,3,1,4",
       "Split sp pt -> q5 k5 v5 | axis=0 num_outputs=3",
       "Squeeze sq q5 first -> q4",
       "Squeeze sk k5 first -> k4",
       "Squeeze sv v5 first -> v",
       "Mul fq q4 e -> q",
       "Transpose tk k4 -> k | perm=0,1,3,2",
       QUANTIZED("q", "as", "az"),
       QUANTIZED("k", "as", "az"),
       QUANTIZED("v", "as", "az"),
       "DequantizeLinear uq bq as az -> qf",
       "DequantizeLinear uk bk as az -> kf",
       "DequantizeLinear uv bv as az -> vf",
       "MatMul ms qf kf -> s2",
       "Softmax no s2 -> n",
       "QuantizeLinear nq n ws wz -> n8",
       "DequantizeLinear nd n8 ws wz -> nf",
       "MatMul my nf vf -> y4",
       "QuantizeLinear yq y4 as az -> y8",
       "Transpose ty y8 -> y | perm=0,2,1,3"},
      "y"},
     2,
     7},
};
enum { N_ROWS = sizeof rows / sizeof *rows };

static void fill(pair_case_sample_t* s, uint64_t seed) {
  for (size_t k = 0; s->in[k]; k++) int8_case_fill(s->in[k], &seed);
}

static void one_launch_has_the_bits_of_all(void** state) {
  (void)state;
  for (size_t i = 0; i < N_ROWS; i++) {
    const siblings_case_t* c = &rows[i];
    pair_case_sample_t s;
    pair_case_run_t want, got;
    pair_case_init(&c->graph, &s);
    fill(&s, i);
    pair_case_run(s.m, ASSAY_FORMAT_FP32, &apart, s.in, &want);
    pair_case_run(s.m, ASSAY_FORMAT_FP32, &any, s.in, &got);
    assert_int_equal(want.siblings, 0);
    if (got.siblings != c->siblings)
      fail_msg("%s: %d layers in the launch of another, not %d", c->graph.name, got.siblings,
               c->siblings);
    assert_int_equal(got.joined, c->joined);
    pair_case_same(c->graph.name, &want, &got);
    pair_case_release(&want);
    pair_case_release(&got);
    pair_case_deinit(&s);
  }
}

static assay_status_t count(void* user, const assay_layer_t* layer, const assay_node_t* node,
                            uint64_t iteration, size_t n_in, assay_tensor_t* const* in,
                            size_t n_out, assay_tensor_t* const* out) {
  (void)layer, (void)node, (void)iteration, (void)n_in, (void)in, (void)out;
  *(int*)user += n_out == 1;
  return NULL;
}

static void layers_that_are_looked_at_stay_alone(void** state) {
  (void)state;
  int layers = 0;
  const assay_tap_t tap = {.layer = count, .user = &layers};
  const pair_case_way_t looked_at = {.tap = &tap};
  pair_case_sample_t s;
  pair_case_run_t want, tapped;
  pair_case_init(&rows[1].graph, &s);
  fill(&s, 1);
  pair_case_run(s.m, ASSAY_FORMAT_FP32, &any, s.in, &want);
  pair_case_run(s.m, ASSAY_FORMAT_FP32, &looked_at, s.in, &tapped);
  assert_int_equal(tapped.siblings, 0);
  assert_int_equal(layers, PAIR_CASE_RUNS * 4);
  pair_case_same("with a tap", &want, &tapped);
  pair_case_release(&want);
  pair_case_release(&tapped);
  pair_case_deinit(&s);
}

// A timing cache with another time of all ways of one launch.
static void retime(const char* times, const char* microseconds, assay_str_t* out) {
  for (const char* line = times; *line;) {
    const size_t all = strcspn(line, "\n"), length = all + (line[all] == '\n');
    const char* name = strstr(line, " int8_siblings/");
    if (name && name < line + all)
      assay_str_printf_raw(out, "%s%.*s", microseconds, (int)(line + length - name), name);
    else
      assay_str_printf_raw(out, "%.*s", (int)length, line);
    line += length;
  }
}

static const graph_case_t small = {
    "few rows and terms",
    21,
    {"x uint8[3,16]"},
    {NUMBERS, "s float[] 0.5", "s2 float[] 0.4", "w1 int8[16,8]", "w2 int8[16,8]"},
    {PRODUCT("q", "w1", BY_ONE("q")), BYTES("q", "as", "az"), PRODUCT("k", "w2", "s2 -> wfk"),
     BYTES("k", "bs", "bz")},
    "yq yk"};

// Each kernel takes 5 us on the clock of the platform.
static void one_launch_has_to_be_faster(void** state) {
  if (getenv("ASSAY_TEST_GPU")) skip();  // its times are its own
  static const struct {
    const char* microseconds;
    int siblings;
  } times[] = {{"4.00", 1}, {"9.99", 1}, {"10.00", 0}, {"80.00", 0}};
  static const char sources[] = "-int8_mma,-int8_direct";
  (void)state;
  pair_case_sample_t s;
  pair_case_run_t want, got;
  assay_str_t measured = {0};
  pair_case_init(&small, &s);
  fill(&s, 1);
  pair_case_run(s.m, ASSAY_FORMAT_FP32,
                &(pair_case_way_t){.sources = sources, .measured = &measured}, s.in, &want);
  for (size_t i = 0; i < sizeof times / sizeof *times; i++) {
    assay_str_t text = {0};
    retime(assay_str_get(&measured), times[i].microseconds, &text);
    pair_case_run(s.m, ASSAY_FORMAT_FP32,
                  &(pair_case_way_t){.sources = sources, .times = assay_str_get(&text)}, s.in,
                  &got);
    if (got.siblings != times[i].siblings)
      fail_msg("%s us: %d layers in the launch of another", times[i].microseconds, got.siblings);
    pair_case_same(times[i].microseconds, &want, &got);
    pair_case_release(&got);
    assay_str_deinit(&text);
  }
  pair_case_release(&want);
  pair_case_deinit(&s);
  assay_str_deinit(&measured);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(one_launch_has_the_bits_of_all),
                                     cmocka_unit_test(layers_that_are_looked_at_stay_alone),
                                     cmocka_unit_test(one_launch_has_to_be_faster)};
  setenv("ASSAY_FAKE_TIMES", "8000,0,5000,0", 1);
  product_case_platform();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
