// Products with weights of 4 and 8 bits on a GPU that is not there (fake/): beside the emulated
// engine and within their bounds; the same bits by each tile, and as on a CPU with multiply-adds.
#include <stdlib.h>

#include "backends/cpu/gemm/coded_kernel.h"
#include "backends/weight_only_rows.h"
#include "cuda/forced_case.h"

enum { N_ROWS = sizeof products / sizeof *products };

static bool is_taken(const tactic_case_t* c) {
  return c->tactic && strcmp(c->tactic, "weight_only") == 0;
}

static void rows_agree(void** state) {
  (void)state;
  for (size_t i = 0; i < N_ROWS; i++)
    if (is_taken(&products[i])) tactic_case_check(&products[i]);
}

static void tiles_give_the_same_bits(void** state) {
  static const char* const tiles[] = {"weight_only/64x64", "weight_only/16x64", "weight_only/4x32"};
  (void)state;
  for (size_t i = 0; i < N_ROWS; i++) {
    assay_tensor_t* in[GRAPH_CASE_ROWS] = {NULL};
    tactic_run_t want;
    if (!is_taken(&products[i])) continue;
    assay_model_t* m = graph_case_model(&products[i].graph, in);
    const char* name = products[i].graph.name;
    forced_case_run(m, "cuda", tiles[0], in, &want);
    for (size_t k = 1; k < sizeof tiles / sizeof *tiles; k++)
      forced_case_compare(name, &want, m, "cuda", tiles[k], in);
    if (cpu_coded_has_avx512()) forced_case_compare(name, &want, m, "cpu", "weight_only", in);
    tactic_case_release(&want);
    graph_case_release(in);
    assay_model_release(m);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(rows_agree),
                                     cmocka_unit_test(tiles_give_the_same_bits)};
  const char* platform = getenv("ASSAY_TEST_LIBCUDA");
  setenv("ASSAY_CUDA_PATH", platform ? platform : ".", 1);
  tactic_case_backend = "cuda";
  return cmocka_run_group_tests(tests, NULL, NULL);
}
