// What lies under the movers: symbolic shapes through chains of operators, the strided copy against
// plain loops, and Gather on packed weights.
#include <omp.h>

#include "formats/format.h"
#include "ops/data/strided.h"
#include "ops/op_case.h"

// ---- chains -------------------------------------------------------------------------------------

// A node of a chain: "out = Op(in, in; attrs)" in pieces. Names that start with a type are
// constants.
typedef struct step {
  const char* out;  // "y", or "y z" for two
  const char* op;
  const char* in;  // names and constants, separated by ';'
  const char* attrs;
} step_t;

typedef struct chain {
  const char* inputs[3];  // "x float N,12,64"
  step_t steps[8];
  const char* expected;  // dims of the last step's first output
} chain_t;

static assay_value_t* chain_value(assay_model_t* m, const char* word) {
  assay_value_t* v = assay_graph_find(m->graph, word);
  if (v) return v;
  op_case_ok(assay_graph_new_value(m->graph, "constant", &v));
  op_case_ok(assay_graph_set_initializer(v, op_case_tensor(word)));
  return v;
}

static void chain_input(assay_model_t* m, const char* text) {
  char name[16], type[16], sizes[64] = "";
  assert_true(sscanf(text, "%15s %15s %63s", name, type, sizes) >= 2);
  const assay_dim_t* dims[ASSAY_MAX_RANK];
  int rank = 0;
  for (char* p = strtok(sizes, ","); p; p = strtok(NULL, ",")) {
    bool number = *p >= '0' && *p <= '9';
    dims[rank++] =
        number ? assay_dim_const(m->dims, strtoll(p, NULL, 10)) : assay_dim_symbol(m->dims, p);
  }
  assay_value_t* v = NULL;
  op_case_ok(assay_graph_add_value(m->graph, name, &v));
  op_case_ok(assay_valtype_tensor(m, assay_type_parse(type), rank, dims, &v->declared));
  v->is_input = true;
  m->graph->inputs[m->graph->n_inputs++] = v;
}

static void chain_step(assay_model_t* m, const step_t* s) {
  char words[256], *rest = NULL;
  assay_value_t* in[8];
  assay_node_t* n = NULL;
  size_t n_in = 0, n_out = 0;
  snprintf(words, sizeof words, "%s", s->in);
  for (char* p = strtok_r(words, ";", &rest); p; p = strtok_r(NULL, ";", &rest))
    in[n_in++] = chain_value(m, p);
  for (const char* p = s->out; p; p = strchr(p + 1, ' ')) n_out++;
  op_case_ok(assay_node_create(m->graph, "", s->op, s->out, n_in, n_out, 8, &n));
  memcpy(n->inputs, in, n_in * sizeof *in);
  op_case_attrs(m, n, s->attrs, 18);
  snprintf(words, sizeof words, "%s", s->out);
  size_t i = 0;
  for (char* p = strtok_r(words, " ", &rest); p; p = strtok_r(NULL, " ", &rest)) {
    assay_value_t* v = NULL;
    op_case_ok(assay_graph_add_value(m->graph, p, &v));
    assay_node_set_output(n, i++, v);
  }
  op_case_ok(assay_graph_insert(m->graph, n, m->graph->n_nodes));
}

static void chain_run(const chain_t* c) {
  assay_model_t* m = NULL;
  op_case_ok(assay_model_create(&m));
  m->ir_version = 8;
  m->opsets = assay_arena_alloc(m->arena, 1, sizeof *m->opsets);
  m->opsets[0] = (assay_opset_t){"", 18};
  m->n_opsets = 1;
  op_case_ok(assay_graph_create(m, NULL, &m->graph));
  m->graph->name = "chain";
  m->graph->inputs = op_case_list(m, 3);
  for (int i = 0; i < 3 && c->inputs[i]; i++) chain_input(m, c->inputs[i]);
  for (int i = 0; i < 8 && c->steps[i].op; i++) chain_step(m, &c->steps[i]);
  op_case_ok(assay_onnx_check(m));
  op_case_ok(assay_infer_model(m));
  const assay_node_t* last = m->graph->nodes[m->graph->n_nodes - 1];
  char text[256] = "";
  const assay_valtype_t* t = last->outputs[0]->type;
  assert_non_null(t);
  for (int i = 0; t->has_shape && i < t->rank; i++) {
    size_t used = strlen(text);
    snprintf(text + used, sizeof text - used, "%s%s", i ? ", " : "",
             assay_dim_text(t->dims[i], (char[64]){0}, 64));
  }
  if (!t->has_shape) snprintf(text, sizeof text, "no rank");
  assert_string_equal(text, c->expected);
  assay_model_release(m);
}

static void test_chains(void** state) {
  (void)state;
  static const chain_t chains[] = {
      // The batch of the input, kept through Reshape.
      {{"x float N,12,64"},
       {{"s", "Shape", "x", NULL},
        {"g", "Gather", "s;int64[] 0", NULL},
        {"u", "Unsqueeze", "g;int64[1] 0", NULL},
        {"c", "Concat", "u;int64[1] -1", "axis=0"},
        {"y", "Reshape", "x;c", NULL}},
       "N, 768"},
      {{"x float N,12,64"}, {{"y", "Reshape", "x;int64[2] 0 -1", NULL}}, "N, 768"},
      // Heads apart and together again.
      {{"x float B,S,768"},
       {{"r", "Reshape", "x;int64[4] 0 0 12 64", NULL},
        {"t", "Transpose", "r", "perm=0,2,1,3"},
        {"b", "Transpose", "t", "perm=0,2,1,3"},
        {"s", "Shape", "b", "end=2"},
        {"c", "Concat", "s;int64[1] -1", "axis=0"},
        {"y", "Reshape", "b;c", NULL}},
       "B, S, 768"},
      // Sizes computed in floats, as exporters of Upsample do.
      {{"x float N,C,H,W"},
       {{"s", "Shape", "x", "start=2"},
        {"f", "Cast", "s", "to=1"},
        {"m", "Mul", "f;float[2] 2 3", NULL},
        {"r", "Floor", "m", NULL},
        {"i", "Cast", "r", "to=7"},
        {"y", "ConstantOfShape", "i", NULL}},
       "2*H, 3*W"},
      // Division in floats is not an integer division.
      {{"x float H,W"},
       {{"s", "Shape", "x", NULL},
        {"f", "Cast", "s", "to=1"},
        {"m", "Div", "f;float[] 2", NULL},
        {"i", "Cast", "m", "to=7"},
        {"y", "ConstantOfShape", "i", NULL}},
       "?, ?"},
      {{"x float H,W"},
       {{"s", "Shape", "x", NULL},
        {"m", "Div", "s;int64[] 2", NULL},
        {"k", "Add", "m;int64[2] 1 2", NULL},
        {"y", "ConstantOfShape", "k", NULL}},
       "floor(H/2) + 1, floor(W/2) + 2"},
      // Only one size is open: it is what is left.
      {{"x float N,6"}, {{"y", "Reshape", "x;int64[2] -1 2", NULL}}, "3*N, 2"},
      {{"x float N,6"},
       {{"s", "Shape", "x", NULL},
        {"p q", "Split", "s;int64[2] 1 1", NULL},
        {"y", "ConstantOfShape", "p", NULL}},
       "N"},
      // Positions of a cache and new tokens.
      {{"p float B,P,8", "x float B,S,8"},
       {{"k", "Concat", "p;x", "axis=1"},
        {"s", "Shape", "k", "start=1 end=2"},
        {"q", "Squeeze", "s", NULL},
        {"r", "Range", "int64[] 0;q;int64[] 1", NULL}},
       "P + S"},
      {{"m float 1,1024", "p float P", "x float S"},
       {{"k", "Concat", "p;x", "axis=0"},
        {"s", "Shape", "k", NULL},
        {"y", "Slice", "m;int64[1] 0;s;int64[1] 1", NULL}},
       "1, min(P + S, 1024)"},
      {{"x float B,S"},
       {{"y", "Slice", "x;int64[1] 0;int64[1] -1;int64[1] 1", NULL}},
       "B, max(S - 1, 0)"},
      {{"x float B,S"},
       {{"y", "Slice", "x;int64[1] 0;int64[1] 9223372036854775807;int64[1] 1;int64[1] 2", NULL}},
       "B, floor((S + 1)/2)"},
      {{"x float B,S"},
       {{"y", "Slice", "x;int64[1] -1;int64[1] -9223372036854775807;int64[1] 1;int64[1] -1", NULL}},
       "B, S"},
      {{"x float N,C,H,W"},
       {{"y", "Pad", "x;int64[8] 0 0 1 1 0 0 1 1", NULL}},
       "N, C, H + 2, W + 2"},
      {{"x float N,C,H,W"}, {{"y", "DepthToSpace", "x", "blocksize=2"}}, "N, floor(C/4), 2*H, 2*W"},
      {{"x float N,5"}, {{"y z", "Split", "x", "axis=1 num_outputs=2"}}, "N, 3"},
      {{"x float N,D"}, {{"y", "Tile", "x;int64[2] 2 1", NULL}}, "2*N, D"},
      {{"x float N,D", "y float M,1"},
       {{"s", "Shape", "y", NULL}, {"e", "Expand", "x;s", NULL}},
       "broadcast(N, M), D"},
      {{"x float N,1"},
       {{"s", "Shape", "x", NULL},
        {"c", "Concat", "s;int64[1] 7", "axis=0"},
        {"g", "Gather", "c;int64[2] 0 2", NULL},
        {"e", "Expand", "x;g", NULL}},
       "N, 7"},
      {{"x float N,D", "i int64 A,B"}, {{"y", "Gather", "x;i", "axis=1"}}, "N, A, B"},
      {{"x float N,D"}, {{"y", "Flatten", "x", "axis=0"}}, "1, N*D"},
  };
  for (size_t i = 0; i < sizeof chains / sizeof *chains; i++) chain_run(&chains[i]);
}

// ---- the strided copy ---------------------------------------------------------------------------

static uint64_t seed = 1;

static int64_t draw(int64_t n) {  // 0 .. n - 1
  seed = seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
  return (int64_t)((seed >> 33) % (uint64_t)n);
}

// Any box inside two tensors: a permuted, cut and partly reversed view of one into a dense other.
static void copy_once(assay_type_t type, int64_t max) {
  int rank = (int)draw(5);
  int64_t in_dims[5] = {0}, dims[5] = {0}, strides[5], from[5], to[5], offset = 0;
  int perm[5];
  for (int i = 0; i < rank; i++) {
    perm[i] = i;
    in_dims[i] = 1 + draw(max);
  }
  for (int i = rank - 1; i > 0; i--) {
    int j = (int)draw(i + 1), swap = perm[i];
    perm[i] = perm[j];
    perm[j] = swap;
  }
  assay_row_major(rank, in_dims, strides);
  for (int i = 0; i < rank; i++) {
    int64_t size = in_dims[perm[i]], step = 1 + draw(2);
    dims[i] = (size + step - 1) / step;
    from[i] = strides[perm[i]] * step;
    if (draw(4) == 0) {
      offset += (dims[i] - 1) * from[i];
      from[i] = -from[i];
    } else if (draw(8) == 0) {
      from[i] = 0;
    }
  }
  assay_tensor_t *in = NULL, *one = NULL, *many = NULL;
  op_case_ok(assay_tensor_create_zero(type, rank, in_dims, &in));
  op_case_ok(assay_tensor_create_zero(type, rank, dims, &one));
  op_case_ok(assay_tensor_create_zero(type, rank, dims, &many));
  int64_t words = in->store == ASSAY_STORE_C128 ? 2 : 1;
  for (int64_t i = 0; i < in->size * words; i++) assay_f64(in)[i] = (double)(i + 1);
  assay_row_major(rank, dims, to);
  omp_set_num_threads(1);
  op_case_ok(assay_copy_strided(rank, dims, in, offset, from, one, 0, to));
  omp_set_num_threads(3);
  op_case_ok(assay_copy_strided(rank, dims, in, offset, from, many, 0, to));
  assay_odometer_t o;
  assay_odometer_init(&o, rank, dims, from);
  for (int64_t k = 0; k < one->size; k++, assay_odometer_next(&o)) {
    for (int64_t w = 0; w < words; w++) {
      double expected = assay_f64(in)[(offset + o.offset) * words + w];
      if (assay_f64(one)[k * words + w] != expected || assay_f64(many)[k * words + w] != expected)
        fail_msg("element %lld of %s", (long long)k, ASSAY_DIMS_TEXT(one));
    }
  }
  assay_tensor_release(in);
  assay_tensor_release(one);
  assay_tensor_release(many);
}

static void test_strided(void** state) {
  (void)state;
  for (int i = 0; i < 2000; i++) copy_once(i % 3 ? ASSAY_TYPE_FLOAT : ASSAY_TYPE_COMPLEX64, 7);
  for (int i = 0; i < 20; i++) copy_once(ASSAY_TYPE_FLOAT, 40);
}

// ---- packed weights -----------------------------------------------------------------------------

// An embedding table in fp16 stays packed: Gather reads only its rows.
static void test_packed(void** state) {
  (void)state;
  const assay_op_t* op = assay_op_find("", "Gather", 13);
  assert_non_null(op);
  assert_true(op->flags & ASSAY_OP_PACKED);
  static const assay_type_t types[] = {ASSAY_TYPE_FLOAT16, ASSAY_TYPE_FLOAT,
                                       ASSAY_TYPE_FLOAT8E4M3FN, ASSAY_TYPE_FLOAT4E2M1};
  for (size_t k = 0; k < sizeof types / sizeof *types; k++) {
    assay_tensor_t *wide = NULL, *packed = NULL, *indices = op_case_tensor("int64[3] 4 -5 1");
    op_case_ok(assay_tensor_create_zero(types[k], 2, (int64_t[]){5, 3}, &wide));
    for (int64_t i = 0; i < wide->size; i++) assay_f64(wide)[i] = (double)(i % 4);
    op_case_ok(assay_tensor_pack(wide, &packed));
    assert_int_equal(packed->store, ASSAY_STORE_PACKED);
    assay_node_t node = {.label = "gather", .op_type = "Gather", .domain = "", .op = op};
    assay_value_t value = {.name = "y"};
    assay_value_t* outputs[1] = {&value};
    node.n_outputs = 1;
    node.outputs = outputs;
    assay_tensor_t *in[2] = {packed, indices}, *out[1] = {NULL};
    assay_eval_t c = {.node = &node, .n_in = 2, .in = in, .n_out = 1, .out = out};
    op_case_ok(op->eval(&c));
    assert_int_equal(out[0]->store, ASSAY_STORE_F64);
    static const int64_t rows[] = {4, 0, 1};
    for (int64_t i = 0; i < 9; i++) {
      double expected = (double)((rows[i / 3] * 3 + i % 3) % 4);
      assert_true(assay_f64(out[0])[i] == expected);
    }
    assay_tensor_release(out[0]);
    assay_tensor_release(wide);
    assay_tensor_release(packed);
    assay_tensor_release(indices);
  }
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(test_chains),
      cmocka_unit_test(test_strided),
      cmocka_unit_test(test_packed),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
