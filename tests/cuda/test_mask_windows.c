// Attention whose constant masks are windows, on a GPU that is not there (fake/): the bits that the
// same masks give as values of the run, and keys that nobody sees are not read.
#include "cuda/product_case.h"

enum { MAX_TEXT = 1 << 18, BLOCK = 64 };

// A mask of so many queries and keys, of which query i sees [i - left, i + right]; odd: the element
// there is another one, -1: none.
typedef struct row {
  const char* name;
  int heads, queries, keys, left, right, odd;
  float instead;
  bool is_window;
} row_t;

static const row_t rows[] = {
    {"causal", 2, 70, 70, 1000, 0, -1, 0, true},
    {"causal, more keys than queries", 1, 19, 83, 1000, 64, -1, 0, true},
    {"near keys", 2, 140, 140, 5, 3, -1, 0, true},
    {"keys behind", 1, 30, 150, 1000, 39, -1, 0, true},
    {"all keys", 1, 20, 36, 1000, 1000, -1, 0, true},
    {"one key more beside the others", 2, 70, 70, 1000, 0, 70 * 40 + 41, 0, false},
    {"the last key less", 2, 70, 70, 1000, 0, 70 * 40 + 40, -INFINITY, false},
    {"the first key less", 2, 70, 70, 1000, 0, 70 * 40, -INFINITY, false},
    {"one key more", 2, 70, 70, 1000, 0, 7, 0, false},
    {"a key less", 2, 70, 70, 1000, 0, 70 * 40 + 3, -INFINITY, false},
    {"an addend", 2, 70, 70, 1000, 0, 70 * 40 + 3, 0.5F, false},
};

static void print_mask(const row_t* r, const char* shape, char* out) {
  size_t n = (size_t)snprintf(out, MAX_TEXT, "m float[%s%d,%d]", shape, r->queries, r->keys);
  for (int i = 0; i < r->queries; i++)
    for (int j = 0; j < r->keys; j++) {
      const bool seen = j >= i - r->left && j <= i + r->right;
      const float x = i * r->keys + j == r->odd ? r->instead : seen ? 0.0F : -INFINITY;
      n += (size_t)snprintf(out + n, MAX_TEXT - n, " %g", (double)x);
    }
}

static const char* const nodes[] = {"MatMul p q k -> s", "Add a s m -> t", "Softmax f t -> w",
                                    "MatMul o w v -> y"};

static void print_sides(const row_t* r, char (*to)[64]) {
  snprintf(to[0], 64, "q float[2,%d,%d,16]", r->heads, r->queries);
  snprintf(to[1], 64, "k float[2,%d,16,%d]", r->heads, r->keys);
  snprintf(to[2], 64, "v float[2,%d,%d,16]", r->heads, r->keys);
}

static graph_case_t case_of(const row_t* r, char (*sides)[64], const char* mask, bool constant) {
  graph_case_t c = {.name = r->name, .opset = 17, .outputs = "y"};
  for (int i = 0; i < 3; i++) c.inputs[i] = sides[i];
  *(constant ? &c.constants[0] : &c.inputs[3]) = mask;
  for (int i = 0; i < 4; i++) c.nodes[i] = nodes[i];
  return c;
}

// The last value of the first head, which the first query of a window does not see, is not a
// number.
static void spoil(assay_tensor_t* v, const row_t* r) {
  assay_f64(v)[(int64_t)(r->keys - 1) * 16] = (double)NAN;
}

// Whether the last block of keys is one that no query of the first block sees.
static bool is_left_out(const row_t* r) {
  const int query = r->queries < BLOCK ? r->queries - 1 : BLOCK - 1;
  return r->is_window && (r->keys - 1) / BLOCK * BLOCK > query + r->right;
}

static void run(const graph_case_t* c, const row_t* r, bool spoiled, tactic_run_t* out) {
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
  assay_model_t* m = graph_case_model(c, in);
  if (spoiled) spoil(in[2], r);
  forced_case_run_in(ASSAY_FORMAT_FP16, m, "cuda", "attention_f16", in, out);
  assert_true(tactic_case_is_by(out->tactic, "attention_f16"));
  graph_case_release(in);
  assay_model_release(m);
}

static void masks_are_windows(void** state) {
  (void)state;
  static char mask[MAX_TEXT];
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    const row_t* r = &rows[i];
    char sides[3][64];
    tactic_run_t of_run, constant, spoiled;
    print_message("%s\n", r->name);
    print_sides(r, sides);
    print_mask(r, i % 2 ? "1,1," : "", mask);
    const graph_case_t a = case_of(r, sides, mask, false), b = case_of(r, sides, mask, true);
    run(&a, r, false, &of_run);
    run(&b, r, false, &constant);
    run(&b, r, true, &spoiled);
    if (!tactic_case_identical(of_run.out[0], constant.out[0])) fail_msg("other bits");
    const bool hidden = isfinite(assay_tensor_element(spoiled.out[0], 0));
    if (hidden != is_left_out(r))
      fail_msg("the first query gives %g of a value that it does not see",
               assay_tensor_element(spoiled.out[0], 0));
    tactic_case_release(&of_run);
    tactic_case_release(&constant);
    tactic_case_release(&spoiled);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(masks_are_windows)};
  product_case_platform();
  return cmocka_run_group_tests(tests, NULL, NULL);
}
