// Parts of checks, whose checksum and model are made to fit: added to a check of the network that
// their first byte draws, which is run and reported.
#include <assay/assay.h>
#include <omp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/hash.h"
#include "check/check_public.h"
#include "subjects.h"

int LLVMFuzzerInitialize(int* argc, char*** argv);
int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size);
size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed);
size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t max_size);

// A part begins with a magic, a checksum and what it is of.
enum { NETWORKS = 16, MAGIC = 8, HEAD = 16, IDENTITY = 8 };

int LLVMFuzzerInitialize(int* argc, char*** argv) {
  (void)argc;
  (void)argv;
  omp_set_num_threads(1);
  assay_memory_set_limit(200 << 20);
  return 0;
}

typedef struct work {
  assay_model_t* model;
  assay_samples_t* inputs;
  assay_check_t* check;
} work_t;

static assay_status_t open_work(uint8_t number, work_t* w) {
  assay_check_options_t o = ASSAY_CHECK_OPTIONS_INIT;
  o.precision = number % 2 ? ASSAY_FORMAT_BF16 : ASSAY_FORMAT_FP16;
  o.target = number % 3 ? "emu" : "cpu";
  o.no_fix = true;
  *w = (work_t){.model = subject_model(number % NETWORKS)};
  ASSAY_TRY(assay_samples_random(w->model, 3, 0, NULL, &w->inputs));
  return assay_check_create(w->model, &o, &w->check);
}

static void close_work(work_t* w) {
  assay_check_destroy(w->check);
  assay_samples_destroy(w->inputs);
  assay_model_release(w->model);
}

static assay_status_t keep(void* user, const char* data, size_t size) {
  assay_str_append_n(user, data, size);
  return assay_str_status(user);
}

static assay_status_t report(const work_t* w) {
  static const assay_report_kind_t kinds[] = {ASSAY_REPORT_TEXT, ASSAY_REPORT_JSON};
  assay_status_t st = NULL;
  for (int i = 0; !st && i < 2; i++) {
    assay_str_t text = {0};
    st = assay_check_report(w->check, kinds[i], NULL, keep, &text);
    assay_str_deinit(&text);
  }
  return st;
}

static assay_status_t use(const work_t* w, uint8_t* part, size_t size) {
  uint64_t identity;
  ASSAY_TRY(assay_check_identify(w->check, &identity));
  if (size >= HEAD + IDENTITY) memcpy(part + HEAD, &identity, sizeof identity);
  const uint64_t sum = assay_hash(part + HEAD, size - HEAD, 0);
  memcpy(part, "assayac1", MAGIC);
  memcpy(part + MAGIC, &sum, sizeof sum);
  ASSAY_TRY(assay_check_add_part(w->check, part, size));
  if (assay_check_added(w->check) != assay_samples_count(w->inputs)) return NULL;
  ASSAY_TRY(assay_check_run(w->check, w->inputs, NULL));
  return report(w);
}

int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size <= HEAD) return 0;
  work_t w;
  uint8_t* part = malloc(size - 1 + HEAD);
  if (!part) abort();
  memcpy(part + HEAD, data + 1, size - 1);
  assay_status_t st = open_work(data[0], &w);
  if (!st) st = use(&w, part, size - 1 + HEAD);
  close_work(&w);
  free(part);
  if (assay_status_code(st) == ASSAY_INTERNAL) {
    fprintf(stderr, "%s\n", assay_status_message(st));
    abort();
  }
  assay_status_free(st);
  if (assay_alloc_live()) abort();
  return 0;
}

// The part of a network, without its head; as much of it as there is room for.
static size_t make_part(uint8_t number, uint8_t* data, size_t max_size) {
  assay_str_t bytes = {0};
  work_t w;
  assay_status_t st = open_work(number, &w);
  if (!st) st = assay_check_add_samples(w.check, w.inputs, NULL);
  if (!st) st = assay_check_save_part(w.check, keep, &bytes);
  close_work(&w);
  const size_t n = st ? 0 : bytes.len - HEAD;
  const bool fits = n && n < max_size;
  if (fits) memcpy(data + 1, bytes.text + HEAD, n);
  data[0] = number;
  assay_str_deinit(&bytes);
  assay_status_free(st);
  return fits ? n + 1 : 1;
}

// What is too short becomes the part of a network. Half of the changes put a number that counts
// rarely have in a place where one may be.
size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t max_size, unsigned seed) {
  static const uint64_t odd[] = {0, UINT64_MAX, INT64_MAX, (uint64_t)INT64_MIN, 1, 1 << 20};
  if (size <= HEAD) return make_part(size ? data[0] : (uint8_t)seed, data, max_size);
  if (seed % 2) return 1 + LLVMFuzzerMutate(data + 1, size - 1, max_size - 1);
  const size_t at = 1 + (seed / 16) % (size - 1 - sizeof *odd);
  memcpy(data + at, &odd[seed / 2 % (sizeof odd / sizeof *odd)], sizeof *odd);
  return size;
}
