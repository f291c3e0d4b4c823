// Pickles of PyTorch tensors: one is read, damaged ones and others are not. against_tools.py has
// whole files.
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

// cmocka needs these before it
#include <cmocka.h>

#include "base/alloc.h"
#include "io/damage.h"
#include "io/torch.h"

// A bfloat16 tensor [2, 3] of strides `strides`, by protocol 2.
#define PICKLE(strides)                                                     \
  "\x80\x02"                                                                \
  "ctorch._utils\n_rebuild_tensor_v2\nq\x00((X\x07\x00\x00\x00storageq\x01" \
  "ctorch\nBFloat16Storage\nq\x02X\x01\x00\x00\x00"                         \
  "0q\x03X\x03\x00\x00\x00"                                                 \
  "cpuq\x04K\x20tq\x05Q"                                                    \
  "K\x01K\x02K\x03\x86q\x06" strides                                        \
  "\x86q\x07\x89"                                                           \
  "ccollections\nOrderedDict\nq\x08)Rq\ttq\nRq\x0b."
static const char good[] = PICKLE("K\x03K\x01");

static assay_status_t read_bytes(const uint8_t* data, size_t size) {
  assay_tensor_t* t = NULL;
  assay_status_t st = assay_torch_unpickle(data, size, &t);
  if (!st) assay_tensor_release(t);
  return st;
}

static void one_tensor(void** state) {
  (void)state;
  assay_tensor_t* t = NULL;
  assert_null(assay_torch_unpickle((const uint8_t*)good, sizeof good - 1, &t));
  assert_int_equal(t->type, ASSAY_TYPE_BFLOAT16);
  assert_int_equal(t->rank, 2);
  assert_int_equal(t->dims[1], 3);
  assay_tensor_release(t);
}

static void others(void** state) {
  (void)state;
#define ROW(text, says) \
  { text, sizeof text - 1, says }
  static const struct {
    const char* text;
    size_t n;
    const char* says;
  } rows[] = {
      ROW("\x80\x02"
          "cposix\nsystem\nX\x04\x00\x00\x00"
          "true\x85R.",
          "'posix.system'"),
      ROW("\x80\x02"
          "cos\nsystem\n.",
          "'os.system'"),
      ROW("\x80\x02"
          "ccollections\nOrderedDict\n)R.",
          "more than one plain tensor"),
      ROW("\x80\x02}.", "more than one plain tensor"),
      ROW("\x80\x04"
          "K\x01.",
          "more than one plain tensor"),
      ROW("\x80\x02)R.", "damaged"),
      ROW("\x80\x02"
          "Q",
          "damaged"),
      ROW("\x80\x02"
          "h\x05.",
          "damaged"),
      ROW(PICKLE("M\x00\x10K\x01"), "past the end"),
      ROW(PICKLE("J\xff\xff\xff\xffK\x01"), "damaged"),
      ROW("", "more than one plain tensor"),
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assay_status_t st = read_bytes((const uint8_t*)rows[i].text, rows[i].n);
    if (!st || !strstr(assay_status_message(st), rows[i].says))
      fail_msg("row %zu: %s", i, st ? assay_status_message(st) : "was read");
    assay_status_free(st);
  }
}

static void damaged(void** state) {
  (void)state;
  damage_all((const uint8_t*)good, sizeof good - 1, true, read_bytes);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(one_tensor), cmocka_unit_test(others),
                                     cmocka_unit_test(damaged)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
