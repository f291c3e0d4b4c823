// Allocations fail in reading and running the ONNX operator tests, so in every kernel: nothing
// leaks or crashes, and what is wrong afterwards is said to be a lack of memory.
//
//   alloc_cases FOLDER N [PATTERN]
//
// N allocations of each case fail, one a run, at places that a printed seed draws; ASSAY_FULL=1:
// all.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/random.h"
#include "check/conformance.h"
#include "io/json.h"
#include "seed_case.h"

// Runs a case; what it says goes to message: "" passed.
static assay_code_t run_case(const char* folder, char* message, size_t capacity) {
  assay_str_t why = {0};
  assay_status_t st = assay_conformance_run(folder, NULL, &why);
  assay_code_t code = why.failed ? ASSAY_NO_MEMORY : assay_status_code(st);
  snprintf(message, capacity, "%s", st ? assay_status_message(st) : assay_str_get(&why));
  assay_status_free(st);
  assay_str_deinit(&why);
  return code;
}

// How many of the allocations were not survived.
static int fail_some(const char* folder, uint64_t count, uint64_t seed, uint64_t* runs) {
  char message[512];
  if (run_case(folder, message, sizeof message) || *message) return 0;  // another test's business
  assay_alloc_fail_after(0, false);
  run_case(folder, message, sizeof message);
  uint64_t total = assay_alloc_fail_after(0, false);
  bool all = total <= count || getenv("ASSAY_FULL");
  assay_random_t random = assay_random_make(seed, folder, 0);
  int wrong = 0;
  for (uint64_t i = 0; i < (all ? total : count); i++, ++*runs) {
    uint64_t n = all ? i + 1 : 1 + (uint64_t)(assay_random_uniform(&random, i) * (double)total);
    int64_t live = assay_alloc_live();
    assay_alloc_fail_after(n, false);
    assay_code_t code = run_case(folder, message, sizeof message);
    assay_alloc_fail_after(0, false);
    int64_t leaked = assay_alloc_live() - live;
    // Messages of cases hold the status of what failed as text.
    bool clean = code == ASSAY_NO_MEMORY || !*message || strstr(message, "memory");
    if (clean && !leaked) continue;
    wrong++;
    printf("FAIL %s: allocation %llu of %llu fails: %lld not freed: %s\n", folder,
           (unsigned long long)n, (unsigned long long)total, (long long)leaked, message);
  }
  return wrong;
}

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  json_set_alloc_funcs(assay_malloc, assay_free);
  assay_case_list_t list = {0};
  assay_status_t st = assay_conformance_find(argv[1], &list);
  if (st) return fprintf(stderr, "%s\n", assay_status_message(st)), assay_status_free(st), 1;
  const uint64_t count = (uint64_t)test_draws(strtoll(argv[2], NULL, 10));
  uint64_t seed = test_seed(), runs = 0;
  int wrong = 0;
  for (size_t i = 0; i < list.n; i++) {
    if (argc > 3 && !assay_glob_match(argv[3], list.names[i])) continue;
    char folder[4096];
    snprintf(folder, sizeof folder, "%s/%s", argv[1], list.names[i]);
    wrong += fail_some(folder, count, seed, &runs);
  }
  printf("%zu cases, %llu runs, %d failures\n", list.n, (unsigned long long)runs, wrong);
  assay_case_list_deinit(&list);
  return wrong || !runs;
}
