// Host tensors: who owns the bytes, and that containers become canonical with all that they hold.
#include "ops/op_case.h"

// ---- bytes of others ----------------------------------------------------------------------------

static int released;

static void count_release(void* owner) {
  assert_ptr_equal(owner, &released);
  released++;
}

static void owned_bytes_are_released_once(void** state) {
  (void)state;
  static const float bytes[3] = {1, 2, 3};
  const int64_t dims[1] = {3}, column[2] = {3, 1}, wrong[1] = {4};
  assay_tensor_t *t = NULL, *view = NULL, *wide = NULL;
  released = 0;
  op_case_ok(assay_tensor_wrap_packed(ASSAY_TYPE_FLOAT, 1, dims, bytes, sizeof bytes, count_release,
                                      &released, &t));
  op_case_ok(assay_tensor_view(t, 2, column, &view));
  op_case_ok(assay_tensor_widen(view, &wide));
  assert_ptr_equal(t->data, bytes);
  assert_true(assay_f64(wide)[2] == 3);
  assay_tensor_release(t);
  assert_int_equal(released, 0);  // the view holds it
  assay_tensor_release(view);
  assert_int_equal(released, 1);
  assay_tensor_release(wide);  // a copy
  assert_int_equal(released, 1);
  // On failure the claim is given up at once.
  assay_status_t st = assay_tensor_wrap_packed(ASSAY_TYPE_FLOAT, 1, wrong, bytes, sizeof bytes,
                                               count_release, &released, &t);
  assert_int_equal(assay_status_code(st), ASSAY_CORRUPT);
  assay_status_free(st);
  assert_int_equal(released, 2);
}

// float32 that lies in 16 bits: read as float32 in every way, cut and shown as its bytes lie.
static void narrow_elements_are_floats(void** state) {
  (void)state;
  static const struct {
    float x, fp16, bf16;
  } rows[] = {
      {1, 1, 1},
      {1.0009766f, 1.0009766f, 1},        // 1 + 2^-10
      {-2049, -2048, -2048},              // ties to even
      {65519, 65504, 65536},              // the largest that stays finite
      {65520, INFINITY, 65536},           // the first that does not
      {-1e30f, -INFINITY, -0x1.94p+99f},  // as bfloat16: 1e30
      {5.9604645e-8f, 0x1p-24f, 0x1p-24f},
      {2.9e-8f, 0, 0x1.f2p-26f},
      {-1e-20f, -0.0f, -0x1.7ap-67f},
      {-0.0f, -0.0f, -0.0f},
      {INFINITY, INFINITY, INFINITY},
  };
  enum { N = sizeof rows / sizeof *rows };
  float x[N];
  const int64_t dims[] = {N}, column[] = {N, 1}, rest[] = {N - 3};
  for (size_t i = 0; i < N; i++) x[i] = rows[i].x;
  for (int is_bf16 = 0; is_bf16 < 2; is_bf16++) {
    const assay_type_t type = is_bf16 ? ASSAY_TYPE_BFLOAT16 : ASSAY_TYPE_FLOAT16;
    assay_tensor_t *t = NULL, *n = NULL, *wide = NULL, *packed = NULL, *shown = NULL;
    assay_tensor_t *copy = NULL, *view = NULL, *part = NULL, *from_wide = NULL;
    op_case_ok(assay_tensor_wrap_packed(ASSAY_TYPE_FLOAT, 1, dims, x, sizeof x, NULL, NULL, &t));
    op_case_ok(assay_tensor_narrow(t, type, &n));
    assert_int_equal(n->type, ASSAY_TYPE_FLOAT);
    assert_int_equal(n->store, ASSAY_STORE_NARROW);
    assert_false(assay_tensor_is_canonical(n));
    op_case_ok(assay_tensor_widen(n, &wide));
    op_case_ok(assay_tensor_pack(n, &packed));
    op_case_ok(assay_tensor_narrowed(n, &shown));
    op_case_ok(assay_tensor_copy(n, &copy));
    op_case_ok(assay_tensor_view(copy, 2, column, &view));
    op_case_ok(assay_tensor_part(view, 3, 1, rest, &part));
    op_case_ok(assay_tensor_narrow(wide, type, &from_wide));
    assert_int_equal(wide->type, ASSAY_TYPE_FLOAT);
    assert_int_equal(packed->type, ASSAY_TYPE_FLOAT);
    assert_int_equal(shown->type, type);
    assert_ptr_equal(shown->data, n->data);
    assert_int_equal(part->store, ASSAY_STORE_NARROW);
    assert_memory_equal(from_wide->data, n->data, N * sizeof(uint16_t));
    for (size_t i = 0; i < N; i++) {
      const float want = is_bf16 ? rows[i].bf16 : rows[i].fp16;
      const float got[] = {(float)assay_f64(wide)[i], ((const float*)packed->data)[i],
                           (float)assay_tensor_element(shown, (int64_t)i),
                           (float)assay_tensor_element(view, (int64_t)i),
                           i < 3 ? want : (float)assay_tensor_element(part, (int64_t)i - 3)};
      for (size_t k = 0; k < sizeof got / sizeof *got; k++)
        if (memcmp(&got[k], &want, sizeof want) != 0)
          fail_msg("%g is %g as %s, way %zu", (double)x[i], (double)got[k], assay_type_name(type),
                   k);
    }
    assay_tensor_t* all[] = {t, n, wide, packed, shown, copy, view, part, from_wide};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) assay_tensor_release(all[i]);
  }
}

// What engines do not round alike is left as it is.
static void odd_elements_do_not_get_narrow(void** state) {
  (void)state;
  const float odd[] = {NAN, 0x1p-127f, -0x1p-149f};
  const int64_t dims[] = {2};
  for (size_t i = 0; i < sizeof odd / sizeof *odd; i++) {
    const float x[] = {1, odd[i]};
    assay_tensor_t *t = NULL, *n = NULL;
    op_case_ok(assay_tensor_wrap_packed(ASSAY_TYPE_FLOAT, 1, dims, x, sizeof x, NULL, NULL, &t));
    op_case_ok(assay_tensor_narrow(t, ASSAY_TYPE_BFLOAT16, &n));
    assert_null(n);
    assay_tensor_release(t);
  }
}

// A part shows the bytes of the whole, packed or canonical, as long as it lives.
static void parts_share_bytes(void** state) {
  (void)state;
  static const float bytes[6] = {0, 1, 2, 3, 4, 5};
  const int64_t dims[2] = {3, 2}, row[2] = {1, 2}, rest[1] = {4}, many[1] = {5};
  assay_tensor_t *t = NULL, *wide = NULL, *part = NULL, *made = NULL;
  released = 0;
  op_case_ok(assay_tensor_wrap_packed(ASSAY_TYPE_FLOAT, 2, dims, bytes, sizeof bytes, count_release,
                                      &released, &t));
  op_case_ok(assay_tensor_widen(t, &wide));
  op_case_ok(assay_tensor_part(t, 4, 2, row, &part));
  assert_ptr_equal(part->data, bytes + 4);
  op_case_ok(assay_tensor_widen(part, &made));
  assert_true(made->size == 2 && assay_f64(made)[0] == 4 && assay_f64(made)[1] == 5);
  assay_tensor_release(made);
  assay_status_t st = assay_tensor_part(t, 2, 1, many, &made);
  assert_int_equal(assay_status_code(st), ASSAY_INTERNAL);
  assay_status_free(st);
  assay_tensor_release(t);
  assert_int_equal(released, 0);
  assay_tensor_release(part);
  assert_int_equal(released, 1);
  op_case_ok(assay_tensor_part(wide, 2, 1, rest, &part));
  assert_ptr_equal(part->data, assay_f64(wide) + 2);
  assert_false(assay_tensor_is_sole(part));
  assay_tensor_release(wide);
  assert_true(assay_f64(part)[3] == 5);
  assay_tensor_release(part);
  // Elements of 4 bits can be cut where a byte begins.
  static const uint8_t codes[8] = {0x21, 0x43, 0x65, 0x07, 0x21, 0x43, 0x65, 0x07};
  const int64_t nibbles[1] = {16}, half[1] = {8};
  op_case_ok(
      assay_tensor_wrap_packed(ASSAY_TYPE_INT4, 1, nibbles, codes, sizeof codes, NULL, NULL, &t));
  op_case_ok(assay_tensor_part(t, 8, 1, half, &part));
  assert_ptr_equal(part->data, codes + 4);
  assay_tensor_release(part);
  st = assay_tensor_part(t, 1, 1, half, &part);
  assert_int_equal(assay_status_code(st), ASSAY_UNSUPPORTED);
  assay_status_free(st);
  assay_tensor_release(t);
}

static int n_made;

static assay_status_t make_three(void* owner, assay_tensor_t** out) {
  assert_ptr_equal(owner, &released);
  if (n_made++ == 3) return ASSAY_ERROR(ASSAY_CORRUPT, "the fourth time it fails");
  const int64_t dims[1] = {3};
  ASSAY_TRY(assay_tensor_create(ASSAY_TYPE_FLOAT, 1, dims, out));
  for (int i = 0; i < 3; i++) assay_f64(*out)[i] = i;
  return NULL;
}

// What is late is made whenever it is asked for, in whatever way, and its failure is that of the
// asker.
static void late_ones_are_made(void** state) {
  (void)state;
  const int64_t dims[1] = {3}, column[2] = {3, 1}, wrong[1] = {-1};
  assay_tensor_t *t = NULL, *out = NULL;
  released = n_made = 0;
  op_case_ok(assay_tensor_create_late(ASSAY_TYPE_FLOAT, 1, dims, make_three, count_release,
                                      &released, &t));
  assert_false(assay_tensor_is_canonical(t));
  assert_int_equal(n_made, 0);
  op_case_ok(assay_tensor_widen(t, &out));
  assert_true(assay_tensor_is_canonical(out) && assay_f64(out)[2] == 2);
  assay_tensor_release(out);
  op_case_ok(assay_tensor_pack(t, &out));
  assert_true(out->store == ASSAY_STORE_PACKED && ((const float*)out->data)[2] == 2);
  assay_tensor_release(out);
  op_case_ok(assay_tensor_view(t, 2, column, &out));
  assert_true(out->rank == 2 && assay_f64(out)[1] == 1);
  assay_tensor_release(out);
  assert_int_equal(n_made, 3);
  assay_status_t st = assay_tensor_widen(t, &out);
  assert_int_equal(assay_status_code(st), ASSAY_CORRUPT);
  assay_status_free(st);
  st = assay_tensor_part(t, 0, 1, dims, &out);
  assert_int_equal(assay_status_code(st), ASSAY_UNSUPPORTED);
  assay_status_free(st);
  assay_tensor_forget(t);
  assay_tensor_forget_whole(t);
  assay_tensor_release(t);
  assert_int_equal(released, 1);
  st = assay_tensor_create_late(ASSAY_TYPE_FLOAT, 1, wrong, make_three, count_release, &released,
                                &t);
  assert_int_equal(assay_status_code(st), ASSAY_INVALID_ARGUMENT);
  assay_status_free(st);
  assert_int_equal(released, 2);
}

// Without a release function nothing is freed, whatever `owner` is: bytes on the stack would not
// survive it.
static void borrowed_bytes_stay(void** state) {
  (void)state;
  int64_t bytes[2] = {5, -6};
  const int64_t dims[1] = {2}, none[1] = {0}, wrong[1] = {3};
  assay_tensor_t *t = NULL, *copy = NULL;
  op_case_ok(
      assay_tensor_wrap_packed(ASSAY_TYPE_INT64, 1, dims, bytes, sizeof bytes, NULL, bytes, &t));
  assert_null(t->owner);
  op_case_ok(assay_tensor_copy(t, &copy));
  assay_tensor_release(t);
  bytes[0] = 7;
  assert_int_equal(((const int64_t*)copy->data)[0], 5);
  assay_tensor_release(copy);
  assay_status_t st =
      assay_tensor_wrap_packed(ASSAY_TYPE_INT64, 1, wrong, bytes, sizeof bytes, NULL, bytes, &t);
  assert_int_equal(assay_status_code(st), ASSAY_CORRUPT);
  assay_status_free(st);
  op_case_ok(assay_tensor_wrap_packed(ASSAY_TYPE_INT64, 1, none, NULL, 0, NULL, NULL, &t));
  assert_non_null(t->data);
  assay_tensor_release(t);
}

// ---- containers --------------------------------------------------------------------------------

// "float[2] 1 2" as it lies in files.
static assay_tensor_t* packed(const char* text) {
  assay_tensor_t *wide = op_case_tensor(text), *t = NULL;
  op_case_ok(assay_tensor_pack(wide, &t));
  assay_tensor_release(wide);
  return t;
}

static assay_tensor_t* packed_sequence(void) {
  assay_tensor_t *items[2] = {packed("float[2] 1 2"), packed("float[2] 3 4.1")}, *s = NULL;
  op_case_ok(assay_sequence_create(ASSAY_TYPE_FLOAT, 2, items, &s));
  for (int i = 0; i < 2; i++) assay_tensor_release(items[i]);
  return s;
}

static void containers_widen_with_their_items(void** state) {
  (void)state;
  assay_tensor_t *s = packed_sequence(), *box = NULL, *wide = NULL, *again = NULL;
  op_case_ok(assay_optional_create(ASSAY_TYPE_FLOAT, s, &box));
  assert_false(assay_tensor_is_canonical(box));
  op_case_ok(assay_tensor_widen(box, &wide));
  assert_true(assay_tensor_is_canonical(wide));
  assert_int_equal(wide->kind, ASSAY_KIND_OPTIONAL);
  assert_int_equal(wide->items[0]->n_items, 2);
  assert_int_equal(wide->items[0]->type, ASSAY_TYPE_FLOAT);
  assert_true(assay_f64(wide->items[0]->items[0])[1] == 2);
  assert_int_equal(s->items[0]->store, ASSAY_STORE_PACKED);  // the original is as it was
  op_case_ok(assay_tensor_widen(wide, &again));
  assert_ptr_equal(again, wide);
  assay_tensor_release(again);
  assay_tensor_release(wide);
  assay_tensor_release(box);
  assay_tensor_release(s);
}

static void maps_widen(void** state) {
  (void)state;
  assay_tensor_t *keys = packed("int64[2] 7 8"), *values = packed("float[2] 0.5 1"), *map = NULL,
                 *wide = NULL;
  op_case_ok(assay_map_create(keys, values, &map));
  op_case_ok(assay_tensor_widen(map, &wide));
  assert_int_equal(assay_i64(wide->items[0])[1], 8);
  assert_true(assay_f64(wide->items[1])[0] == 0.5);
  assay_tensor_release(keys);
  assay_tensor_release(values);
  assay_tensor_release(map);
  assay_tensor_release(wide);
}

static void a_shared_container_is_not_changed(void** state) {
  (void)state;
  assay_tensor_t *s = packed_sequence(), *mine = assay_tensor_retain(s);
  op_case_ok(assay_container_unshare(&mine));
  assert_ptr_not_equal(mine, s);
  assert_ptr_equal(mine->items[0], s->items[0]);
  assay_tensor_t* same = mine;
  op_case_ok(assay_container_unshare(&mine));
  assert_ptr_equal(mine, same);
  assay_tensor_release(mine);
  assay_tensor_release(s);
}

// ---- in a run ----------------------------------------------------------------------------------

// The operators that read a sequence's items, on items as they come from files; in native mode,
// which rounds outputs: the sequence that came in must not be rounded with them.
static void operators_read_packed_items(void** state) {
  (void)state;
  static const struct {
    const char *op, *attrs, *out;
  } rows[] = {
      {"ConcatFromSequence", "axis=0", "float[4] 1 2 3 4.1"},
      {"ConcatFromSequence", "axis=0 new_axis=1", "float[2,2] 1 2 3 4.1"},
      {"SequenceLength", NULL, "int64[] 2"},
      {"Identity", NULL, NULL},
  };
  for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
    assay_tensor_t *s = packed_sequence(), *in[OP_CASE_VALUES] = {op_case_tensor("float[] 0")};
    assay_value_t* values[OP_CASE_VALUES] = {NULL};
    const op_case_t row = {rows[r].op, 17, rows[r].attrs, {"float[] 0"}, {"float[0]"}, NULL};
    assay_model_t* m = op_case_model(&row, OP_CASE_STATIC, in, values);
    const assay_valtype_t* of = NULL;
    op_case_ok(assay_valtype_unranked(m, ASSAY_TYPE_FLOAT, &of));
    op_case_ok(
        assay_valtype_of(m, ASSAY_KIND_SEQUENCE, ASSAY_TYPE_UNDEFINED, of, &values[0]->declared));
    op_case_ok(assay_infer_model(m));
    assay_evaluator_t* evaluator = NULL;
    const assay_evaluator_config_t config = {.mode = ASSAY_MODE_NATIVE, .verify = true};
    op_case_ok(op_case_evaluate(m, &config, 1, values, &s, &evaluator));
    const assay_tensor_t* found = assay_evaluator_get(evaluator, m->graph->outputs[0]);
    assert_true(assay_tensor_is_canonical(found));
    if (rows[r].out) {
      assay_tensor_t* expected = op_case_tensor(rows[r].out);
      op_case_round(expected);
      assert_true(op_case_same(found, expected));
      assay_tensor_release(expected);
    }
    assert_int_equal(s->items[1]->store, ASSAY_STORE_PACKED);
    assay_evaluator_destroy(evaluator);
    assay_model_release(m);
    assay_tensor_release(in[0]);
    assay_tensor_release(s);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(owned_bytes_are_released_once),
      cmocka_unit_test(borrowed_bytes_stay),
      cmocka_unit_test(narrow_elements_are_floats),
      cmocka_unit_test(odd_elements_do_not_get_narrow),
      cmocka_unit_test(parts_share_bytes),
      cmocka_unit_test(late_ones_are_made),
      cmocka_unit_test(containers_widen_with_their_items),
      cmocka_unit_test(maps_widen),
      cmocka_unit_test(a_shared_container_is_not_changed),
      cmocka_unit_test(operators_read_packed_items),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
