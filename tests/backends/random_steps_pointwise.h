// Steps of random graphs: functions, as one node or as several, and two operands.
#ifndef ASSAY_TESTS_BACKENDS_RANDOM_STEPS_POINTWISE_H_
#define ASSAY_TESTS_BACKENDS_RANDOM_STEPS_POINTWISE_H_

#include "backends/random_graph_pick.h"

// ---- functions ------------------------------------------------------------------------------

static bool step_function(random_graph_t* g) {
  static const char* const functions[] = {"Relu %s",
                                          "Sigmoid %s",
                                          "Tanh %s",
                                          "LeakyRelu %s | alpha=0.1",
                                          "LeakyRelu %s",
                                          "Elu %s | alpha=1.2",
                                          "Selu %s",
                                          "HardSigmoid %s",
                                          "HardSwish %s",
                                          "Softplus %s",
                                          "Softsign %s",
                                          "Erf %s",
                                          "Neg %s",
                                          "Abs %s",
                                          "Relu %s",
                                          "Relu %s",
                                          "Identity %s",
                                          "ThresholdedRelu %s | alpha=0.3",
                                          "Sin %s",
                                          "Cos %s",
                                          "Celu %s",
                                          "Floor %s",
                                          "HardSigmoid %s | alpha=0.25 beta=0.4",
                                          "Gelu %s",
                                          "Gelu %s | approximate=tanh",
                                          "Mish %s"};
  PICK(x, has_rank);
  int at = (int)draw(g, 0, (int)(sizeof functions / sizeof *functions) - 1);
  if (at >= 23 && g->opset < 20) at -= 20;
  const bool limited = strncmp(functions[at], "Celu", 4) == 0 && x.type != ASSAY_TYPE_FLOAT;
  if (limited) at = 0;
  if (x.type == ASSAY_TYPE_BFLOAT16 && g->opset < 22) at = at % 3;
  emit(g, x.rows, 1, functions[at], x.name);
  return true;
}

static bool step_clip(random_graph_t* g) {
  PICK(x, has_rank);
  const char* low = one_in(g, 5) ? "_" : number(g, x.type, one_in(g, 2) ? 0 : -0.7);
  const char* high = one_in(g, 5) ? "" : number(g, x.type, one_in(g, 2) ? 6 : 0.8);
  if (*low == '_' && !*high) low = number(g, x.type, -1);
  emit(g, x.rows, 1, "Clip %s %s %s", x.name, low, high);
  return true;
}

// Functions that exporters write as several nodes.
static bool step_composed(random_graph_t* g) {
  PICK(x, has_rank);
  const int kind = (int)draw(g, 0, 6);
  const char* n = x.name;
  int a = -1, b = -1, c = -1;
  if (kind == 0) {  // SiLU
    THEN(a, "Sigmoid %s", n);
    const bool swap = one_in(g, 2);
    THEN(b, "Mul %s %s", swap ? NAME(a) : n, swap ? n : NAME(a));
  } else if (kind == 1) {  // Mish
    THEN(a, "Softplus %s", n);
    THEN(b, "Tanh %s", NAME(a));
    THEN(c, "Mul %s %s", n, NAME(b));
  } else if (kind == 2) {  // GELU by erf
    THEN(a, "Div %s %s", n, number(g, x.type, 1.4142135));
    THEN(b, "Erf %s", NAME(a));
    THEN(a, "Add %s %s", NAME(b), number(g, x.type, 1));
    THEN(b, "Mul %s %s", n, NAME(a));
    THEN(c, "Mul %s %s", NAME(b), number(g, x.type, 0.5));
  } else if (kind == 3) {  // GELU by tanh
    THEN(a, "Mul %s %s", n, n);
    THEN(b, "Mul %s %s", n, NAME(a));
    THEN(a, "Mul %s %s", NAME(b), number(g, x.type, 0.044715));
    THEN(b, "Add %s %s", n, NAME(a));
    THEN(a, "Mul %s %s", NAME(b), number(g, x.type, 0.79788456));
    THEN(b, "Tanh %s", NAME(a));
    THEN(a, "Add %s %s", NAME(b), number(g, x.type, 1));
    THEN(b, "Mul %s %s", NAME(a), n);
    THEN(c, "Mul %s %s", number(g, x.type, 0.5), NAME(b));
  } else if (kind == 4) {  // HardSwish by Clip
    THEN(a, "Add %s %s", n, number(g, x.type, 3));
    THEN(b, "Clip %s %s %s", NAME(a), number(g, x.type, 0), number(g, x.type, 6));
    THEN(a, "Mul %s %s", n, NAME(b));
    THEN(c, "Div %s %s", NAME(a), number(g, x.type, 6));
  } else if (kind == 5) {  // HardSwish by HardSigmoid
    THEN(a, "HardSigmoid %s | alpha=0.16666667", n);
    THEN(b, "Mul %s %s", n, NAME(a));
  } else {  // an inner value read twice
    THEN(a, "Tanh %s", n);
    THEN(b, "Mul %s %s", NAME(a), NAME(a));
    THEN(c, "Sub %s %s", NAME(b), NAME(a));
  }
  return true;
}

// ---- two operands ---------------------------------------------------------------------------

static const char* const binaries[] = {"Add", "Mul", "Sub", "Add", "Mul", "Max", "Min", "Div"};

static bool step_binary_constant(random_graph_t* g) {
  PICK(x, has_rank);
  int64_t dims[RANDOM_GRAPH_RANK];
  int rank = (int)draw(g, 0, x.rank), rows = x.rows;
  for (int i = 0; i < rank; i++) {
    const int at = x.rank - rank + i;
    dims[i] = x.open[at] || one_in(g, 2) ? 1 : x.dims[at];
    if (x.dims[at] == 1 && !x.open[at] && x.size < 200 && one_in(g, 4)) dims[i] = draw(g, 2, 4);
    if (at == x.rows && dims[i] != 1 && !x.open[at]) rows = ROWS_MIXED;
  }
  if (rank == x.rank && rank < 6 && one_in(g, 20)) {  // more dimensions than the value has
    memmove(dims + 1, dims, (size_t)rank * sizeof *dims);
    dims[0] = draw(g, 1, 2);
    rank++;
    if (rows >= 0) rows++;
  }
  const char* op = binaries[draw(g, 0, 7)];
  const char* c = constant(g, x.type, rank, dims, *op == 'D' ? "range 0.5 2" : "normal 0.7");
  const bool swap = *op != 'D' && one_in(g, 3);
  emit(g, rows, 1, "%s %s %s", op, swap ? c : x.name, swap ? x.name : c);
  return true;
}

static bool fits_together(const random_value_t* a, const random_value_t* b) {
  const int rank = a->rank > b->rank ? a->rank : b->rank;
  int64_t size = 1;
  if (a->type != b->type) return false;
  for (int i = 1; i <= rank; i++) {
    const int64_t p = i <= a->rank ? a->dims[a->rank - i] : 1;
    const int64_t q = i <= b->rank ? b->dims[b->rank - i] : 1;
    const bool op = i <= a->rank && a->open[a->rank - i], oq = i <= b->rank && b->open[b->rank - i];
    // An open size goes with the same one, or with a 1 that is always one.
    if ((op || oq) ? !((op && oq && p == q) || (op && !oq && q == 1) || (oq && !op && p == 1))
                   : p != q && p != 1 && q != 1)
      return false;
    size *= p > q ? p : q;
  }
  return size <= 4 * LARGE;
}

static bool step_residual(random_graph_t* g) {
  PICK(x, has_rank);
  int found[RANDOM_GRAPH_VALUES], n = 0;
  for (int i = 0; i < g->n_values; i++)
    if (is_float(g, &g->values[i]) && fits_together(&x, &g->values[i])) found[n++] = i;
  if (!n) return false;
  const random_value_t y = g->values[found[draw(g, 0, n - 1)]];
  static const char* const ops[] = {"Add", "Add", "Add", "Mul", "Sub", "Max"};
  emit(g, rows_of_two(&x, &y), 1, "%s %s %s", ops[draw(g, 0, 5)], x.name, y.name);
  return true;
}

// x times a gate of its own means: squeeze and excite.
static bool step_gate(random_graph_t* g) {
  PICK(x, is_image);
  const int64_t dims[2] = {x.dims[1], x.dims[1]};
  const int rows = keeps_0(&x);
  const int m = emit(g, rows, 1, "GlobalAveragePool %s", x.name);
  if (m < 0) return true;
  int s = m;
  if (one_in(g, 2)) {
    int64_t w[5] = {dims[0], dims[1], 1, 1, 1};
    s = emit(g, rows, 1, "Conv %s %s", g->values[m].name, weights(g, x.type, x.rank, w, dims[0]));
  }
  s = emit(g, rows, 1, "Sigmoid %s", g->values[s].name);
  emit(g, rows, 1, "Mul %s %s", x.name, g->values[s].name);
  return true;
}

static bool step_where(random_graph_t* g) {
  PICK(x, has_rank);
  const int b = emit(g, x.rows, 1, "Greater %s %s", x.name, number(g, x.type, 0.1));
  if (b < 0) return true;
  emit(g, x.rows, 1, "Where %s %s %s", g->values[b].name, x.name, number(g, x.type, -0.25));
  return true;
}

static bool step_prelu(random_graph_t* g) {
  PICK(x, has_channels);
  const int64_t dims[5] = {x.dims[1], 1, 1, 1, 1};
  if (x.rank > 5) return false;
  emit(g, x.rows, 1, "PRelu %s %s", x.name,
       constant(g, x.type, x.rank - 1, dims, "range 0.05 0.4"));
  return true;
}

#endif  // ASSAY_TESTS_BACKENDS_RANDOM_STEPS_POINTWISE_H_
