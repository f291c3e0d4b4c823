// Parts of arrays: each row is what NumPy gives for the same text; NULL: it raises IndexError.
#include "data/slice.h"
#include "ops/op_case.h"

static const char a[] = "int64[2,3,4] iota", b[] = "int64[5] iota", c[] = "int64[0,3]",
                  s[] = "int64[] 7";

static const struct {
  const char *array, *text, *part;
} rows[] = {
    {a, "[:]", "int64[2,3,4] 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23"},
    {a, "[...]", "int64[2,3,4] 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23"},
    {a, "[0]", "int64[3,4] 0 1 2 3 4 5 6 7 8 9 10 11"},
    {a, "[-1]", "int64[3,4] 12 13 14 15 16 17 18 19 20 21 22 23"},
    {a, "[1,2]", "int64[4] 20 21 22 23"},
    {a, "[1,2,3]", "int64[] 23"},
    {a, "[0,...,1]", "int64[3] 1 5 9"},
    {a, "[...,-1]", "int64[2,3] 3 7 11 15 19 23"},
    {a, "[:,1:]", "int64[2,2,4] 4 5 6 7 8 9 10 11 16 17 18 19 20 21 22 23"},
    {a, "[:,:-1,::2]", "int64[2,2,2] 0 2 4 6 12 14 16 18"},
    {a, "[::-1]", "int64[2,3,4] 12 13 14 15 16 17 18 19 20 21 22 23 0 1 2 3 4 5 6 7 8 9 10 11"},
    {a, "[:,::-2]", "int64[2,2,4] 8 9 10 11 0 1 2 3 20 21 22 23 12 13 14 15"},
    {a, "[1:1]", "int64[0,3,4]"},
    {a, "[5:]", "int64[0,3,4]"},
    {a, "[-9:9]", "int64[2,3,4] 0 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23"},
    {a, "[:, 2:0:-1]", "int64[2,2,4] 8 9 10 11 4 5 6 7 20 21 22 23 16 17 18 19"},
    {a, "[1,...]", "int64[3,4] 12 13 14 15 16 17 18 19 20 21 22 23"},
    {a, "[...,1:3,:]", "int64[2,2,4] 4 5 6 7 8 9 10 11 16 17 18 19 20 21 22 23"},
    {a, "[2]", NULL},
    {a, "[-3]", NULL},
    {a, "[0,0,4]", NULL},
    {a, "[0,0,0,0]", NULL},
    {a, "[ : , 0 ]", "int64[2,4] 0 1 2 3 12 13 14 15"},
    {a, "[0,]", "int64[3,4] 0 1 2 3 4 5 6 7 8 9 10 11"},
    {a, "[:,:,-1:-4:-1]", "int64[2,3,3] 3 2 1 7 6 5 11 10 9 15 14 13 19 18 17 23 22 21"},
    {a, "[:,4:0:-1]", "int64[2,2,4] 8 9 10 11 4 5 6 7 20 21 22 23 16 17 18 19"},
    {a, "[...,3::-1]",
     "int64[2,3,4] 3 2 1 0 7 6 5 4 11 10 9 8 15 14 13 12 19 18 17 16 23 22 21 20"},
    {a, "[9::-1]", "int64[2,3,4] 12 13 14 15 16 17 18 19 20 21 22 23 0 1 2 3 4 5 6 7 8 9 10 11"},
    {b, "[1:4]", "int64[3] 1 2 3"},
    {b, "[::3]", "int64[2] 0 3"},
    {b, "[-2:]", "int64[2] 3 4"},
    {b, "[3:-3:-1]", "int64[1] 3"},
    {b, "[4]", "int64[] 4"},
    {b, "[5]", NULL},
    {b, "[9:-9:-2]", "int64[3] 4 2 0"},
    {b, "[:0]", "int64[0]"},
    {b, "[:-6:-1]", "int64[5] 4 3 2 1 0"},
    {c, "[:]", "int64[0,3]"},
    {c, "[0]", NULL},
    {c, "[:,1]", "int64[0]"},
    {c, "[::-1]", "int64[0,3]"},
    {s, "[...]", "int64[] 7"},
    {s, "[0]", NULL},
    {s, "[:]", NULL},
};

static void parts_are_numpys(void** state) {
  (void)state;
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assay_slice_t slice;
    assay_tensor_t *t = op_case_tensor(rows[i].array), *part = NULL;
    op_case_ok(assay_slice_parse(rows[i].text, &slice));
    assay_status_t st = assay_slice_take(&slice, t, &part);
    if (!st != (rows[i].part != NULL))
      fail_msg("%s of %s: %s", rows[i].text, rows[i].array, st ? assay_status_message(st) : "fits");
    if (st) {
      assert_int_equal(assay_status_code(st), ASSAY_INVALID_ARGUMENT);
      assay_status_free(st);
    } else {
      assay_tensor_t* want = op_case_tensor(rows[i].part);
      if (part->rank != want->rank || memcmp(part->dims, want->dims, (size_t)want->rank * 8) ||
          (want->size && memcmp(part->data, want->data, (size_t)want->size * 8)))
        fail_msg("%s of %s has shape %s", rows[i].text, rows[i].array, ASSAY_DIMS_TEXT(part));
      assay_tensor_release(want);
    }
    assay_tensor_release(part);
    assay_tensor_release(t);
  }
}

static void strings_have_parts(void** state) {
  (void)state;
  assay_slice_t slice;
  assay_tensor_t *t = op_case_tensor("string[2,2] p q r s"), *part = NULL;
  op_case_ok(assay_slice_parse("[:, 1]", &slice));
  op_case_ok(assay_slice_take(&slice, t, &part));
  assert_int_equal(part->size, 2);
  assert_memory_equal(assay_strings(part)[0].text, "q", 1);
  assert_memory_equal(assay_strings(part)[1].text, "s", 1);
  assay_tensor_release(part);
  assay_tensor_release(t);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(parts_are_numpys),
                                     cmocka_unit_test(strings_have_parts)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
