// Constant masks that hide all keys but those near a query (causal ones, as exporters write them):
// kernels then read neither the mask nor the keys that nobody sees.
#include <math.h>
#include <string.h>

#include "backends/cuda/attention/attention.h"
#include "base/alloc.h"

enum { NO_REACH = INT32_MAX / 2 };

// A mask's matrix: a row of keys for each query.
typedef struct matrix {
  const float* at;
  int64_t queries, keys;
} matrix_t;

// The keys that a row shows, [low, high): there are some, side by side, to which 0 is added, and
// -infinity to all others.
static bool find_shown(const float* row, int64_t keys, int64_t* low, int64_t* high) {
  int64_t i = 0;
  while (i < keys && row[i] == -INFINITY) i++;
  *low = i;
  while (i < keys && row[i] == 0) i++;
  *high = i;
  while (i < keys && row[i] == -INFINITY) i++;
  return i == keys && *low < *high;
}

static int64_t low_of(int64_t query, int64_t left) { return query > left ? query - left : 0; }
static int64_t high_of(int64_t query, int64_t right, int64_t keys) {
  return query + right + 1 < keys ? query + right + 1 : keys;
}

// How far queries see, where that is as far for all.
static bool find_reach(const matrix_t* m, int64_t* left, int64_t* right) {
  int64_t low, high;
  *left = *right = NO_REACH;
  for (int64_t i = 0; i < m->queries; i++) {
    if (!find_shown(m->at + i * m->keys, m->keys, &low, &high)) return false;
    if (low) *left = i - low;
    if (high < m->keys && *right == NO_REACH) *right = high - 1 - i;
  }
  for (int64_t i = 0; i < m->queries; i++) {
    (void)find_shown(m->at + i * m->keys, m->keys, &low, &high);
    if (low != low_of(i, *left) || high != high_of(i, *right, m->keys)) return false;
  }
  return true;
}

// Whether rows of the mask are those of its matrices, one after the other.
static bool is_of_matrices(const attention_layer_t* a, const attention_mask_t* m, int64_t size) {
  const int64_t all = a->q_len * a->kv_len;
  bool yes = m->kind == ASSAY_ATTENTION_ADDED && m->key == 1 && m->rank > 0 && all > 0 &&
             size % all == 0 && m->dims[m->rank - 1] == a->q_len &&
             m->strides[m->rank - 1] == a->kv_len;
  for (int d = 0; d < m->rank - 1; d++) yes = yes && m->strides[d] % all == 0;
  return yes;
}

static assay_status_t read_mask(const assay_operand_t* o, const attention_layer_t* a, int64_t* left,
                                int64_t* right, bool* ok) {
  const float* at = NULL;
  float* made = NULL;
  ASSAY_TRY(assay_operand_view(o, &at, &made));
  const int64_t all = a->q_len * a->kv_len;
  *ok = true;
  for (int64_t i = 0; *ok && i < o->size; i += all) {
    const matrix_t m = {at + i, a->q_len, a->kv_len};
    int64_t of_left, of_right;
    *ok = find_reach(&m, &of_left, &of_right) && (!i || (of_left == *left && of_right == *right));
    *left = of_left;
    *right = of_right;
  }
  assay_free(made);
  return NULL;
}

static void remove_mask(attention_layer_t* a, int i) {
  a->n_masks--;
  memmove(&a->masks[i], &a->masks[i + 1], (size_t)(a->n_masks - i) * sizeof *a->masks);
}

assay_status_t cuda_attention_find_window(const assay_sized_layer_t* l, attention_layer_t* a) {
  for (int i = 0; !a->windowed && i < a->n_masks; i++) {
    const assay_operand_t* o = &l->in[a->masks[i].index];
    int64_t left = 0, right = 0;
    bool ok = o->constant && is_of_matrices(a, &a->masks[i], o->size);
    if (ok) ASSAY_TRY(read_mask(o, a, &left, &right, &ok));
    if (!ok) continue;
    a->windowed = true;
    a->left = left;
    a->right = right;
    a->period = a->q_len;
    remove_mask(a, i);
  }
  return NULL;
}
