// The page's data, the page, and the findings in a model: what they say is held against the check
// and against direct counts.
#include <jansson.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// cmocka needs these before it
#include <cmocka.h>

#include "account/pictures.h"
#include "base/alloc.h"
#include "base/random.h"
#include "io/json.h"
#include "onnx/load.h"
#include "onnx/onnx.h"
#include "passes/graph_case.h"
#include "report/model_page.h"
#include "report/page_data.h"

static void fine(assay_status_t st) {
  if (st) fail_msg("%s", assay_status_message(st));
}

// ---- pictures -----------------------------------------------------------------------------------

typedef struct shape {
  int rank;
  int64_t dims[4];
  int rows, columns;  // of the maps; 0: none
} shape_t;

static const shape_t shapes[] = {
    {4, {1, 1, 150, 90}, 64, 64},
    {4, {2, 3, 20, 9}, 20, 9},
    {2, {7, 200}, 7, 64},
    {3, {5, 4, 4}, 4, 4},
    {2, {3, 200}, 0, 0},
    {1, {1000}, 0, 0},
    {0, {0}, 0, 0},
    {4, {0, 3, 8, 8}, 0, 0},
};

static assay_tensor_t* make(const shape_t* s) {
  assay_tensor_t* t = NULL;
  fine(assay_tensor_create_zero(ASSAY_TYPE_FLOAT, s->rank, s->dims, &t));
  return t;
}

// Values of all magnitudes, some zero, some not finite.
static double value_of(const assay_random_t* r, uint64_t i) {
  const double u = assay_random_uniform(r, 3 * i);
  if (u < 0.1) return 0;
  if (u < 0.105) return (double)INFINITY;
  if (u < 0.11) return (double)NAN;
  return ldexp(assay_random_uniform(r, 3 * i + 1) - 0.5,
               (int)(400 * assay_random_uniform(r, 3 * i + 2)) - 200);
}

// The bin of a magnitude, by frexp.
static int bin(double x) {
  int exponent;
  frexp(x, &exponent);
  const int k = exponent - 1 - ASSAY_PICTURE_LOW;
  return k < 0 ? 0 : k >= ASSAY_PICTURE_BINS ? ASSAY_PICTURE_BINS - 1 : k;
}

static int64_t off(const assay_magnitudes_t* m, const double* e, const double* l, int64_t n,
                   int runs) {
  assay_magnitudes_t want = {0};
  int64_t wrong = 0;
  for (int64_t i = 0; i < n; i++) {
    if (!isfinite(e[i])) continue;
    const double d = e[i] - l[i];
    if (d == 0)
      want.zero += runs;
    else if (isfinite(d))
      want.at[bin(fabs(d))] += runs;
  }
  wrong += want.zero != m->zero;
  for (int k = 0; k < ASSAY_PICTURE_BINS; k++) wrong += want.at[k] != m->at[k];
  return wrong;
}

// The code of a cell of own errors, directly.
static int own_code(const assay_picture_t* p, const double* e, const double* l, int row,
                    int column) {
  const int64_t h = p->dims[p->rank - 2], w = p->dims[p->rank - 1],
                planes = assay_dims_product(p->dims, 0, p->rank - 2);
  double sum = 0;
  int64_t n = 0;
  for (int64_t k = 0; k < planes; k++)
    for (int64_t y = 0; y < h; y++)
      for (int64_t x = 0; x < w; x++) {
        bool inside = y >= row * h / p->rows && y < (row + 1) * h / p->rows &&
                      x >= column * w / p->columns && x < (column + 1) * w / p->columns;
        if (!inside) continue;
        const double a = e[(k * h + y) * w + x], b = l[(k * h + y) * w + x];
        n++;
        if (isfinite(a) && isfinite(b))
          sum += (a - b) * (a - b);
        else if (!(isnan(a) && isnan(b)) && a != b)
          return ASSAY_MAP_UNFINITE;
      }
  const double rms = sqrt(sum / (double)n);
  return rms > 0 ? (int)fmax(1, ASSAY_MAP_TOP + round(ASSAY_MAP_STEPS * log2(rms / p->own_map.top)))
                 : 0;
}

static void pictures_count(void** state) {
  (void)state;
  for (size_t s = 0; s < sizeof shapes / sizeof *shapes; s++) {
    const assay_random_t random = assay_random_make(5, "pictures", s);
    assay_pictures_t pictures = {0};
    const assay_account_watch_t watch = assay_pictures_watch(&pictures);
    assay_tensor_t *e = make(&shapes[s]), *l = make(&shapes[s]), *t = make(&shapes[s]);
    for (int64_t i = 0; i < e->size; i++) {
      assay_f64(t)[i] = value_of(&random, (uint64_t)i);
      assay_f64(l)[i] = i % 3 ? assay_f64(t)[i] : assay_f64(t)[i] * (1 + ldexp(1, -(int)(i % 40)));
      assay_f64(e)[i] = i % 5      ? assay_f64(l)[i]
                        : i % 4000 ? assay_f64(l)[i] * (1 - 0x1p-11)
                                   : (double)NAN;
    }
    const assay_value_t value = {.name = "v", .id = 17};
    for (int run = 0; run < 2; run++) watch.value(watch.user, NULL, &value, e, l, t);
    fine(assay_pictures_take_status(&pictures));
    const assay_picture_t* p = assay_pictures_get(&pictures, &value);
    assert_non_null(p);
    assert_null(assay_pictures_get(&pictures, &(assay_value_t){.id = 3}));
    assert_null(assay_pictures_get(&pictures, &(assay_value_t){.id = 1000}));
    assert_int_equal(p->runs, 2);
    assert_int_equal(off(&p->own, assay_f64(e), assay_f64(l), e->size, 2), 0);
    assert_int_equal(off(&p->total, assay_f64(e), assay_f64(t), e->size, 2), 0);
    int64_t seen = p->truth.zero + p->truth_unfinite, nan = 0, inf = 0;
    for (int k = 0; k < ASSAY_PICTURE_BINS; k++)
      seen += p->truth.positive[k] + p->truth.negative[k];
    for (int64_t i = 0; i < e->size; i++) {
      nan += isnan(assay_f64(e)[i]) != 0;
      inf += isinf(assay_f64(e)[i]) != 0;
    }
    assert_int_equal(seen, 2 * e->size);
    assert_int_equal(p->engine_nan, 2 * nan);
    assert_int_equal(p->engine_inf, 2 * inf);
    assert_int_equal(p->rows, shapes[s].rows);
    assert_int_equal(p->columns, shapes[s].columns);
    for (int k = 0; k < p->rows * p->columns; k++) {
      const int want = own_code(p, assay_f64(e), assay_f64(l), k / p->columns, k % p->columns);
      if (abs(p->own_map.code[k] - want) > (want != ASSAY_MAP_UNFINITE && want > 0))
        fail_msg("shape %zu, cell %d: %d, %d expected", s, k, p->own_map.code[k], want);
    }
    assay_tensor_release(e);
    assay_tensor_release(l);
    assay_tensor_release(t);
    assay_pictures_deinit(&pictures);
  }
}

// ---- a check and its page -----------------------------------------------------------------------

typedef struct held {
  assay_model_t* model;
  assay_samples_t samples;
  assay_pictures_t pictures;
  assay_check_t* check;
} held_t;

// Passes fp16's range, and has names that mean something in HTML.
static const graph_case_t awkward = {"awkward",
                                     0,
                                     {"x float[1,2,8,8]"},
                                     {"k float[] 4e4", "l float[] 1e-5"},
                                     {"Mul </script><b>&amp;\"' x k -> p", "Mul down p l -> r",
                                      "Relu <!-- r -> y", "Tanh side x -> </title>"},
                                     "y </title>"};

static void hold(held_t* h, assay_model_t* take_model) {
  h->model = take_model;
  fine(assay_samples_generate(h->model, 1, &h->samples));
  assay_check_setting_t options = {.precision.format = ASSAY_FORMAT_FP16,
                                   .precision_name = "fp16",
                                   .backend = assay_backend_find("emu"),
                                   .pictures = &h->pictures};
  fine(assay_check_model(h->model, &options, &h->samples, NULL, &h->check));
}
static void let_go(held_t* h) {
  assay_check_destroy(h->check);
  assay_pictures_deinit(&h->pictures);
  assay_samples_deinit(&h->samples);
  assay_model_release(h->model);
}

static const assay_report_names_t names = {.model = "folder/</script>&.onnx",
                                           .target = "emu",
                                           .precision = "fp16",
                                           .files = (const char* const[]){"a.onnx"},
                                           .n_files = 1};

static size_t count(const char* text, const char* what) {
  size_t n = 0;
  for (const char* p = text; (p = strstr(p, what)); p++) n++;
  return n;
}

// The page has one element of data, whole, and nothing that ends it.
static void page_escapes(void** state) {
  (void)state;
  held_t h = {0};
  assay_str_t page = {0};
  json_t* data = NULL;
  assay_tensor_t* in[GRAPH_CASE_ROWS] = {0};
  hold(&h, graph_case_model(&awkward, in));
  fine(assay_report_html(h.check, &names, &h.pictures, &page));
  const char* text = assay_str_get(&page);
  static const char begin[] = "<script type=\"application/json\" id=\"data\">";
  assert_int_equal(count(text, "</script>"), 2);
  assert_int_equal(count(text, "<b>&amp;"), 0);
  assert_int_equal(count(text, "</title>"), 1);
  assert_int_equal(count(text, "{{"), 0);
  const char* from = strstr(text, begin);
  assert_non_null(from);
  from += strlen(begin);
  fine(assay_json_parse(from, (size_t)(strstr(from, "</script>") - from), &data));
  assert_string_equal(json_string_value(json_object_get(data, "model")), names.model);
  json_t* first = json_array_get(json_object_get(data, "layers"), 0);
  assert_string_equal(json_string_value(json_object_get(first, "name")), "</script><b>&amp;\"'");
  json_decref(data);
  assay_str_deinit(&page);
  let_go(&h);
  graph_case_release(in);
}

// Every layer reads what stands before it, and who gives an output is named.
static void data_has_the_graph(void** state) {
  (void)state;
  static const char* const models[] = {"cnn", "loop", "if_sequence", "external"};
  for (size_t k = 0; k < sizeof models / sizeof *models; k++) {
    char path[64];
    held_t h = {0};
    json_t* data = NULL;
    assay_model_t* model = NULL;
    snprintf(path, sizeof path, "models/small/%s.onnx", models[k]);
    fine(assay_onnx_load(path, 0, NULL, &model));
    hold(&h, model);
    fine(assay_page_data(h.check, &names, &h.pictures, &data));
    json_t *layers = json_object_get(data, "layers"), *outputs = json_object_get(data, "outputs"),
           *from, *output;
    const json_int_t inputs = (json_int_t)json_array_size(json_object_get(data, "inputs"));
    size_t i, j, edges = 0, pictures = 0;
    json_t* layer;
    json_array_foreach(layers, i, layer) {
      pictures += json_array_size(json_object_get(layer, "values"));
      json_array_foreach(json_object_get(layer, "from"), j, from) {
        const json_int_t at = json_integer_value(from);
        assert_true(at < (json_int_t)i && at >= -inputs);
        edges++;
      }
    }
    assert_true(edges + 1 >= json_array_size(layers) / 2);
    assert_true(pictures > 0);
    json_array_foreach(outputs, i, output) {
      const json_int_t at = json_integer_value(json_object_get(output, "layer"));
      const assay_layer_account_t* a = assay_account_layer(h.check->account, (size_t)at);
      bool gives = false;
      for (size_t o = 0; o < a->node->n_outputs; o++)
        gives |= a->node->outputs[o] == h.check->outputs[i].value;
      assert_true(gives);
    }
    json_decref(data);
    let_go(&h);
  }
}

// ---- the page of a model ------------------------------------------------------------------------

static json_t* data_in(const assay_str_t* page) {
  static const char begin[] = "<script type=\"application/json\" id=\"data\">";
  json_t* data = NULL;
  const char* from = strstr(assay_str_get(page), begin);
  assert_non_null(from);
  from += strlen(begin);
  fine(assay_json_parse(from, (size_t)(strstr(from, "</script>") - from), &data));
  return data;
}

static size_t all_nodes(const assay_model_t* m) {
  size_t n = 0;
  for (size_t g = 0; g < m->n_graphs; g++) n += m->graphs[g]->n_nodes;
  return n;
}

// All nodes are there, those of bodies before the one that has them; places of values are those of
// the list.
static void models_have_pages(void** state) {
  (void)state;
  static const char* const models[] = {"cnn", "loop", "if_sequence", "external", "quantized"};
  for (size_t k = 0; k < sizeof models / sizeof *models; k++) {
    char path[64];
    assay_model_t* m = NULL;
    assay_str_t page = {0};
    snprintf(path, sizeof path, "models/small/%s.onnx", models[k]);
    fine(assay_onnx_load(path, 0, NULL, &m));
    const assay_model_page_t options = {.path = path, .attrs = true, .weights = true};
    fine(assay_model_page(m, &options, &page));
    json_t *data = data_in(&page), *layers = json_object_get(data, "layers"),
           *values = json_object_get(data, "values");
    json_t *layer, *list, *place, *body;
    size_t i, j;
    assert_int_equal(json_array_size(layers), all_nodes(m));
    json_array_foreach(layers, i, layer) {
      static const char* const ports[] = {"reads", "makes"};
      for (size_t p = 0; p < 2; p++) {
        list = json_object_get(layer, ports[p]);
        json_array_foreach(list, j, place) {
          if (json_is_integer(place))
            assert_in_range(json_integer_value(place), 0, json_array_size(values) - 1);
        }
      }
      list = json_object_get(layer, "bodies");
      json_array_foreach(list, j, body) {
        size_t l;
        json_t* inside = json_object_get(body, "layers");
        json_array_foreach(inside, l, place) assert_true(json_integer_value(place) < (json_int_t)i);
      }
    }
    json_decref(data);
    assay_str_deinit(&page);
    assay_model_release(m);
  }
}

// Wherever memory runs out, that is told, and all is given back.
static void pages_without_memory(void** state) {
  (void)state;
  assay_model_t* m = NULL;
  fine(assay_onnx_load("models/small/if_sequence.onnx", 0, NULL, &m));
  const assay_model_page_t options = {.path = "m.onnx", .attrs = true, .weights = true};
  const int64_t live = assay_alloc_live();
  uint64_t nth = 1;
  for (bool done = false; !done; nth++) {
    assay_str_t page = {0};
    assay_alloc_fail_after(nth, false);
    assay_status_t st = assay_model_page(m, &options, &page);
    done = assay_alloc_fail_after(0, false) < nth;
    if (st) assert_int_equal(assay_status_code(st), ASSAY_NO_MEMORY);
    assay_status_free(st);
    if (done) json_decref(data_in(&page));
    assay_str_deinit(&page);
    if (assay_alloc_live() != live) fail_msg("allocation %d: something is left", (int)nth);
  }
  assert_true(nth > 100);
  assay_model_release(m);
}

// Statistics of a file by name; what fails while it is read.
static void tensors_have_statistics(void** state) {
  (void)state;
  static const char path[] = "tensor_info.json";
  static const char text[] =
      "[{\"name\": \"y\", \"dimensions\": \"2x2\", \"values\": [1, 2, 3, 6]},"
      " {\"name\": \"z\", \"dimensions\": \"1\", \"values\": [5]}]";
  fine(assay_file_write(path, text, sizeof text - 1));
  assay_tensor_info_t info = {0};
  fine(assay_tensor_info_read(path, &info));
  const assay_tensor_stats_t* y = assay_tensor_info_find(&info, "y");
  assert_int_equal(info.n, 2);
  assert_non_null(y);
  assert_float_equal(y->numbers.mean, 3, 0);
  assert_float_equal(y->numbers.variance, 3.5, 0);
  assert_float_equal(y->numbers.max.x, 6, 0);
  assert_int_equal(y->rank, 2);
  assert_non_null(strstr(y->text, "mean=3, "));
  assert_null(assay_tensor_info_find(&info, "x"));
  assert_null(assay_tensor_info_find(NULL, "y"));
  assay_tensor_info_deinit(&info);
  const int64_t live = assay_alloc_live();
  for (uint64_t nth = 1;; nth++) {
    assay_alloc_fail_after(nth, false);
    assay_status_t st = assay_tensor_info_read(path, &info);
    const bool reached = assay_alloc_fail_after(0, false) >= nth;
    if (!reached) {
      fine(st);
      break;
    }
    if (!st) {  // it did without
      assay_tensor_info_deinit(&info);
      assert_int_equal(assay_alloc_live(), live);
      continue;
    }
    // Jansson calls a string that it has no memory for a mistake of the text.
    if (assay_status_code(st) != ASSAY_CORRUPT)
      assert_int_equal(assay_status_code(st), ASSAY_NO_MEMORY);
    assay_status_free(st);
    assert_int_equal(assay_alloc_live(), live);
  }
  assay_tensor_info_deinit(&info);
  remove(path);
}

// ---- findings in the model ----------------------------------------------------------------------

static const char* prop(const assay_prop_t* props, size_t n, const char* key) {
  const char* found = NULL;
  for (size_t i = 0; i < n; i++)
    if (!strcmp(props[i].key, key)) {
      assert_null(found);  // once only
      found = props[i].value;
    }
  return found;
}

// The last line of a doc string, which follows `before`.
static const char* last_line(const char* doc, const char* before) {
  const size_t n = strlen(before);
  assert_non_null(doc);
  assert_int_equal(strncmp(doc, before, n), 0);
  assert_null(strstr(doc + n, "\n"));  // one line, although annotated twice
  return doc + n;
}

// Every value that a picture was made of tells its range and error; all have types and are listed.
static void values_tell(const held_t* h, const assay_model_t* m) {
  size_t reported = 0;
  for (size_t i = 0; i < m->graph->n_nodes; i++)
    for (size_t o = 0; o < m->graph->nodes[i]->n_outputs; o++) {
      const assay_value_t* v = m->graph->nodes[i]->outputs[o];
      assert_non_null(v->declared);
      assert_true(v->is_output || v->in_value_info);
      for (size_t k = 0; k < h->pictures.n; k++) {
        const assay_picture_t* p = h->pictures.of_value[k];
        char range[80];
        if (!p || strcmp(p->value->name, v->name) != 0) continue;
        snprintf(range, sizeof range, ", range [%.5g, %.5g]", p->low, p->high);
        const char* line = last_line(v->doc, "");
        assert_non_null(strstr(line, range));
        assert_int_equal(strncmp(line, p->error.mismatched ? "not finite in " : "max abs ", 8), 0);
        reported++;
      }
    }
  assert_true(reported > 2);
}

static void annotations(void** state) {
  (void)state;
  held_t h = {0};
  assay_model_t *model = NULL, *raw = NULL, *again = NULL;
  uint8_t* bytes = NULL;
  size_t size = 0;
  fine(assay_onnx_load("models/small/cnn.onnx", 0, NULL, &model));
  hold(&h, model);
  fine(assay_onnx_read("models/small/cnn.onnx", &raw));
  raw->graph->nodes[0]->props = &(assay_prop_t){"mine", "stays"};
  raw->graph->nodes[0]->n_props = 1;
  raw->graph->nodes[0]->doc = "my words\nof two lines";
  const assay_report_notes_t notes = {.pictures = &h.pictures,
                                      .command = "assay check it",
                                      .page = "page.html",
                                      .inputs = 0xab,
                                      .mark_names = true};
  for (int k = 0; k < 2; k++) fine(assay_report_annotate(h.check, &names, &notes, raw));
  fine(assay_onnx_write_bytes(raw, &bytes, &size));
  fine(assay_onnx_read_bytes(bytes, size, NULL, &again));
  assert_string_equal(prop(again->props, again->n_props, "assay.verdict"), "unfaithful");
  assert_string_equal(prop(again->props, again->n_props, "assay.blame"), "precision");
  assert_string_equal(prop(again->props, again->n_props, "assay.command"), "assay check it");
  assert_string_equal(prop(again->props, again->n_props, "assay.inputs"), "00000000000000ab");
  assert_string_equal(prop(again->props, again->n_props, "assay.report"), "page.html");
  assert_non_null(prop(again->props, again->n_props, "assay.version"));
  assert_true(again->ir_version >= 10);
  size_t overflowed = 0, fixed = 0, marked = 0;
  for (size_t i = 0; i < again->graph->n_nodes; i++) {
    const assay_node_t* n = again->graph->nodes[i];
    const char* verdict = prop(n->props, n->n_props, "assay.verdict");
    const assay_layer_account_t* a = NULL;
    for (size_t k = 0; k < assay_account_layer_count(h.check->account); k++)
      if (!strcmp(assay_account_layer(h.check->account, k)->node->label,
                  n->label + (strncmp(n->label, "!! ", 3) ? 0 : 3)))
        a = assay_account_layer(h.check->account, k);
    if (!a) continue;
    assert_string_equal(verdict, assay_verdict_name(a->verdict));
    if (a->own.n) assert_non_null(prop(n->props, n->n_props, "assay.own_error"));
    if (a->own.n) assert_non_null(prop(n->props, n->n_props, "assay.inherited_error"));
    if (a->storage)
      assert_string_equal(prop(n->props, n->n_props, "assay.format"),
                          assay_format_name(a->storage));
    const char* line = last_line(n->doc, i ? "" : "my words\nof two lines\n");
    assert_int_equal(strncmp(line, "assay: ", 7), 0);
    assert_non_null(strstr(line, verdict));
    bool blamed = a->verdict == ASSAY_VERDICT_DEFECT;
    for (size_t k = 0; k < h.check->culprits.n; k++) blamed |= h.check->culprits.at[k].account == a;
    assert_int_equal(strncmp(n->name, "!! ", 3) == 0, blamed);
    marked += blamed;
    overflowed += a->verdict == ASSAY_VERDICT_OVERFLOW;
    fixed += prop(n->props, n->n_props, "assay.fix") != NULL;
  }
  assert_string_equal(prop(again->graph->nodes[0]->props, again->graph->nodes[0]->n_props, "mine"),
                      "stays");
  values_tell(&h, again);
  assert_true(overflowed > 0);
  assert_true(marked > 0);
  assert_int_equal(fixed, h.check->fix.n_nodes);
  assay_free(bytes);
  assay_model_release(again);
  assay_model_release(raw);
  let_go(&h);
}

int main(void) {
  json_set_alloc_funcs(assay_malloc, assay_free);
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(pictures_count),       cmocka_unit_test(page_escapes),
      cmocka_unit_test(data_has_the_graph),   cmocka_unit_test(models_have_pages),
      cmocka_unit_test(pages_without_memory), cmocka_unit_test(tensors_have_statistics),
      cmocka_unit_test(annotations),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
