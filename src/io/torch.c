// Source: PyTorch 2.5, torch/serialization.py (_save, persistent_id), torch/_utils.py
// (_rebuild_tensor_v2, _rebuild_tensor_v3) and torch/_tensor.py (__reduce_ex__); Python's
// Lib/pickletools.py for the opcodes of pickle protocol 2.
#include "io/torch.h"

#include <string.h>

#include "base/alloc.h"
#include "formats/format.h"
#include "io/zip.h"

// ---- types ------------------------------------------------------------------------------------

static const struct {
  const char *storage, *dtype;  // torch.<storage>, torch.<dtype>
  assay_type_t type;
} dtypes[] = {
    {"FloatStorage", "float32", ASSAY_TYPE_FLOAT},
    {"DoubleStorage", "float64", ASSAY_TYPE_DOUBLE},
    {"HalfStorage", "float16", ASSAY_TYPE_FLOAT16},
    {"BFloat16Storage", "bfloat16", ASSAY_TYPE_BFLOAT16},
    {"LongStorage", "int64", ASSAY_TYPE_INT64},
    {"IntStorage", "int32", ASSAY_TYPE_INT32},
    {"ShortStorage", "int16", ASSAY_TYPE_INT16},
    {"CharStorage", "int8", ASSAY_TYPE_INT8},
    {"ByteStorage", "uint8", ASSAY_TYPE_UINT8},
    {"BoolStorage", "bool", ASSAY_TYPE_BOOL},
    {NULL, "uint16", ASSAY_TYPE_UINT16},
    {NULL, "uint32", ASSAY_TYPE_UINT32},
    {NULL, "uint64", ASSAY_TYPE_UINT64},
    {NULL, "float8_e4m3fn", ASSAY_TYPE_FLOAT8E4M3FN},
    {NULL, "float8_e4m3fnuz", ASSAY_TYPE_FLOAT8E4M3FNUZ},
    {NULL, "float8_e5m2", ASSAY_TYPE_FLOAT8E5M2},
    {NULL, "float8_e5m2fnuz", ASSAY_TYPE_FLOAT8E5M2FNUZ},
    {NULL, "float8_e8m0fnu", ASSAY_TYPE_FLOAT8E8M0},
};
enum { N_DTYPES = sizeof dtypes / sizeof *dtypes };

// ---- values of the pickle ----------------------------------------------------------------------

typedef enum kind {
  NOTHING,  // a memo's place that holds none
  MARK,
  NUMBER,   // bool, too
  TEXT,     // a string of the pickle
  TUPLE,    // items first .. first + n of the machine's pool
  DTYPE,    // storage type or element type: number is its row
  UNTYPED,  // storage of bytes
  REBUILD,  // number: 2 or 3, the version
  WRAP,     // what makes a parameter of a tensor
  ORDERED,  // collections.OrderedDict
  DICT,     // number: which
  STORAGE,  // number: row or -1; text: the key
  TENSOR,   // number: which of those that were found
} kind_t;

typedef struct item {
  kind_t kind;
  int64_t number;
  const char* text;
  size_t len;       // of the text
  size_t first, n;  // of the tuple
} item_t;

typedef struct found {
  assay_type_t type;
  char key[64];    // of the storage: a member of the archive
  int64_t offset;  // in elements
  int rank;
  int64_t dims[ASSAY_MAX_RANK], strides[ASSAY_MAX_RANK];
} found_t;

// What a dictionary has under a name.
typedef struct entry {
  int64_t dict;
  const char* key;  // in the pickle
  size_t len;
  int64_t tensor;  // -1: something else
} entry_t;

// The pickle of a tensor is some 200 bytes.
enum { MAX_PICKLE = 1 << 24 };

typedef struct machine {
  const uint8_t *p, *end;
  item_t *stack, *pool, *memo;
  size_t n, cap, n_pool, cap_pool, n_memo, cap_memo;
  found_t* found;
  size_t n_found, cap_found;
  entry_t* entries;
  size_t n_entries, cap_entries;
  int64_t n_dicts;
  void* owned;  // the pickle's bytes, where they are not in the file
} evaluator_t;

static void evaluator_deinit(evaluator_t* m) {
  assay_free(m->stack);
  assay_free(m->pool);
  assay_free(m->memo);
  assay_free(m->found);
  assay_free(m->entries);
  assay_free(m->owned);
}

static assay_status_t broken(void) {
  return ASSAY_ERROR(ASSAY_CORRUPT, "the pickle of a PyTorch tensor is damaged");
}

static assay_status_t not_pytorch(void) {
  return ASSAY_ERROR(
      ASSAY_UNSUPPORTED,
      "the PyTorch file holds more than one plain tensor, or more than a dictionary of them; "
      "nothing else is unpickled. Save it as npz");
}

static assay_status_t push(evaluator_t* m, item_t item) {
  ASSAY_TRY(assay_grow(&m->stack, &m->cap, m->n + 1, sizeof *m->stack));
  m->stack[m->n++] = item;
  return NULL;
}

// The top `n` items become a tuple.
static assay_status_t make_tuple(evaluator_t* m, size_t n) {
  if (n > m->n) return broken();
  ASSAY_TRY(assay_grow(&m->pool, &m->cap_pool, m->n_pool + n, sizeof *m->pool));
  const size_t first = m->n_pool;
  for (size_t i = 0; i < n; i++) {
    if (m->stack[m->n - n + i].kind == MARK) return broken();
    m->pool[m->n_pool++] = m->stack[m->n - n + i];
  }
  m->n -= n;
  return push(m, (item_t){.kind = TUPLE, .first = first, .n = n});
}

// How many items stand after the last mark. False: there is none.
static bool count_marked(const evaluator_t* m, size_t* out_n) {
  size_t n = 0;
  while (n < m->n && m->stack[m->n - 1 - n].kind != MARK) n++;
  *out_n = n;
  return n < m->n;
}

static assay_status_t make_marked_tuple(evaluator_t* m) {
  size_t n;
  if (!count_marked(m, &n)) return broken();
  ASSAY_TRY(make_tuple(m, n));
  m->stack[m->n - 2] = m->stack[m->n - 1];  // over the mark
  m->n--;
  return NULL;
}

static const item_t* at(const evaluator_t* m, const item_t* tuple, size_t i, kind_t kind) {
  if (tuple->kind != TUPLE || i >= tuple->n) return NULL;
  const item_t* item = &m->pool[tuple->first + i];
  return item->kind == kind ? item : NULL;
}

static bool is_text(const item_t* i, const char* text) {
  return i && i->len == strlen(text) && memcmp(i->text, text, i->len) == 0;
}

// ---- what it may name and call -----------------------------------------------------------------

// A line of text at p, without its end.
static bool take_line(evaluator_t* m, item_t* out) {
  const uint8_t* end = memchr(m->p, '\n', (size_t)(m->end - m->p));
  if (!end) return false;
  *out = (item_t){.kind = TEXT, .text = (const char*)m->p, .len = (size_t)(end - m->p)};
  m->p = end + 1;
  return true;
}

static assay_status_t name_global(evaluator_t* m) {
  item_t module, name;
  if (!take_line(m, &module) || !take_line(m, &name)) return broken();
  if (is_text(&module, "collections") && is_text(&name, "OrderedDict"))
    return push(m, (item_t){.kind = ORDERED});
  if (is_text(&module, "torch._utils") && is_text(&name, "_rebuild_tensor_v2"))
    return push(m, (item_t){.kind = REBUILD, .number = 2});
  if (is_text(&module, "torch._utils") && is_text(&name, "_rebuild_tensor_v3"))
    return push(m, (item_t){.kind = REBUILD, .number = 3});
  if (is_text(&module, "torch._utils") && is_text(&name, "_rebuild_parameter"))
    return push(m, (item_t){.kind = WRAP});
  if ((is_text(&module, "torch.storage") || is_text(&module, "torch")) &&
      is_text(&name, "UntypedStorage"))
    return push(m, (item_t){.kind = UNTYPED, .number = -1});
  for (size_t i = 0; is_text(&module, "torch") && i < N_DTYPES; i++)
    if (is_text(&name, dtypes[i].dtype) || (dtypes[i].storage && is_text(&name, dtypes[i].storage)))
      return push(m, (item_t){.kind = DTYPE, .number = (int64_t)i});
  return ASSAY_ERROR(
      ASSAY_UNSUPPORTED,
      "the PyTorch file's pickle asks for '%.*s.%.*s', which is not part of a plain tensor; "
      "nothing else is unpickled. Save it as npz",
      (int)(module.len < 80 ? module.len : 80), module.text, (int)(name.len < 80 ? name.len : 80),
      name.text);
}

// ("storage", type, key, location, elements)
static assay_status_t load_storage(evaluator_t* m) {
  if (!m->n) return broken();
  const item_t* id = &m->stack[m->n - 1];
  const item_t *word = at(m, id, 0, TEXT), *key = at(m, id, 2, TEXT);
  const item_t* type = at(m, id, 1, DTYPE) ? at(m, id, 1, DTYPE) : at(m, id, 1, UNTYPED);
  if (!is_text(word, "storage") || !type || !key || !at(m, id, 4, NUMBER)) return broken();
  m->stack[m->n - 1] =
      (item_t){.kind = STORAGE, .number = type->number, .text = key->text, .len = key->len};
  return NULL;
}

static bool take_dims(const evaluator_t* m, const item_t* tuple, int* rank, int64_t* out) {
  if (!tuple || tuple->n > ASSAY_MAX_RANK) return false;
  *rank = (int)tuple->n;
  for (size_t i = 0; i < tuple->n; i++) {
    const item_t* d = at(m, tuple, i, NUMBER);
    if (!d || d->number < 0) return false;
    out[i] = d->number;
  }
  return true;
}

// (storage, offset, sizes, strides, requires_grad, hooks [, dtype])
static assay_status_t rebuild(evaluator_t* m, const item_t* args, int version, item_t* out) {
  const item_t *storage = at(m, args, 0, STORAGE), *offset = at(m, args, 1, NUMBER);
  const item_t* dtype = version == 3 ? at(m, args, 6, DTYPE) : NULL;
  int n_strides = 0;
  ASSAY_TRY(assay_grow(&m->found, &m->cap_found, m->n_found + 1, sizeof *m->found));
  found_t* f = &m->found[m->n_found];
  if (!storage || !offset || offset->number < 0 || (version == 3 && !dtype) ||
      (version == 2 && storage->number < 0) || storage->len >= sizeof f->key ||
      !take_dims(m, at(m, args, 2, TUPLE), &f->rank, f->dims) ||
      !take_dims(m, at(m, args, 3, TUPLE), &n_strides, f->strides) || n_strides != f->rank)
    return broken();
  memcpy(f->key, storage->text, storage->len);
  f->key[storage->len] = 0;
  f->offset = offset->number;
  f->type = dtypes[dtype ? dtype->number : storage->number].type;
  *out = (item_t){.kind = TENSOR, .number = (int64_t)m->n_found++};
  return NULL;
}

// The callable and its arguments become what it gives.
static assay_status_t reduce(evaluator_t* m) {
  if (m->n < 2 || m->stack[m->n - 1].kind != TUPLE) return broken();
  const item_t args = m->stack[--m->n];
  item_t* f = &m->stack[m->n - 1];
  if (f->kind == ORDERED && !args.n)
    return *f = (item_t){.kind = DICT, .number = m->n_dicts++}, NULL;
  if (f->kind == WRAP && at(m, &args, 0, TENSOR)) return *f = *at(m, &args, 0, TENSOR), NULL;
  return f->kind == REBUILD ? rebuild(m, &args, (int)f->number, f) : not_pytorch();
}

// The top n items are keys and values of the dictionary below them, and `below` more of the stack.
static assay_status_t set_items(evaluator_t* m, size_t n, size_t below) {
  if (n % 2 || m->n < n + below + 1) return broken();
  const item_t* items = &m->stack[m->n - n];
  const item_t* dict = items - below - 1;
  if (dict->kind != DICT) return not_pytorch();
  for (size_t i = 0; i < n; i += 2) {
    const bool tensor = items[i].kind == TEXT && items[i + 1].kind == TENSOR;
    ASSAY_TRY(assay_grow(&m->entries, &m->cap_entries, m->n_entries + 1, sizeof *m->entries));
    m->entries[m->n_entries++] = (entry_t){.dict = dict->number,
                                           .key = tensor ? items[i].text : NULL,
                                           .len = tensor ? items[i].len : 0,
                                           .tensor = tensor ? items[i + 1].number : -1};
  }
  m->n -= n + below;
  return NULL;
}

static assay_status_t set_marked_items(evaluator_t* m) {
  size_t n;
  return count_marked(m, &n) ? set_items(m, n, 1) : broken();
}

// What is known of a dictionary besides, as modules say it of theirs, is let go.
static assay_status_t let_state_go(evaluator_t* m) {
  if (m->n < 2 || m->stack[m->n - 2].kind != DICT || m->stack[m->n - 1].kind != DICT)
    return not_pytorch();
  m->n--;
  return NULL;
}

// ---- the machine -------------------------------------------------------------------------------

// An unsigned number of up to 4 bytes.
static bool take_bytes(evaluator_t* m, size_t bytes, uint32_t* out) {
  *out = 0;
  if ((size_t)(m->end - m->p) < bytes) return false;
  memcpy(out, m->p, bytes);
  m->p += bytes;
  return true;
}

static assay_status_t push_long(evaluator_t* m) {
  uint32_t n;
  uint64_t v = 0;
  if (!take_bytes(m, 1, &n) || n > 8 || (size_t)(m->end - m->p) < n) return broken();
  if (n) memcpy(&v, m->p, n);
  if (n && n < 8 && m->p[n - 1] & 0x80) v |= UINT64_MAX << (8 * n);
  m->p += n;
  return push(m, (item_t){.kind = NUMBER, .number = (int64_t)v});
}

static assay_status_t push_text(evaluator_t* m) {
  uint32_t n;
  if (!take_bytes(m, 4, &n) || n > (size_t)(m->end - m->p)) return broken();
  m->p += n;
  return push(m, (item_t){.kind = TEXT, .text = (const char*)m->p - n, .len = n});
}

static assay_status_t keep(evaluator_t* m, size_t bytes) {
  uint32_t i;
  if (!take_bytes(m, bytes, &i) || !m->n) return broken();
  if (i > m->n_memo) return not_pytorch();  // picklers number them one by one
  ASSAY_TRY(assay_grow(&m->memo, &m->cap_memo, (size_t)i + 1, sizeof *m->memo));
  m->memo[i] = m->stack[m->n - 1];
  if (i == m->n_memo) m->n_memo++;
  return NULL;
}

static assay_status_t recall(evaluator_t* m, size_t bytes) {
  uint32_t i;
  if (!take_bytes(m, bytes, &i) || i >= m->n_memo) return broken();
  return push(m, m->memo[i]);
}

static assay_status_t push_number(evaluator_t* m, size_t bytes) {
  uint32_t v;
  if (!take_bytes(m, bytes, &v)) return broken();
  return push(m, (item_t){.kind = NUMBER, .number = bytes == 4 ? (int32_t)v : (int64_t)v});
}

static assay_status_t step(evaluator_t* m, uint8_t op) {
  switch (op) {
    case '(':
      return push(m, (item_t){.kind = MARK});
    case 'c':
      return name_global(m);
    case 'q':
      return keep(m, 1);
    case 'r':
      return keep(m, 4);
    case 'h':
      return recall(m, 1);
    case 'j':
      return recall(m, 4);
    case 'X':
      return push_text(m);
    case 'K':
      return push_number(m, 1);
    case 'M':
      return push_number(m, 2);
    case 'J':
      return push_number(m, 4);
    case 0x8a:
      return push_long(m);
    case 0x88:
    case 0x89:
      return push(m, (item_t){.kind = NUMBER, .number = op == 0x88});
    case ')':
      return make_tuple(m, 0);
    case 0x85:
    case 0x86:
    case 0x87:
      return make_tuple(m, (size_t)(op - 0x84));
    case 't':
      return make_marked_tuple(m);
    case '}':
      return push(m, (item_t){.kind = DICT, .number = m->n_dicts++});
    case 's':
      return set_items(m, 2, 0);
    case 'u':
      return set_marked_items(m);
    case 'b':
      return let_state_go(m);
    case 'Q':
      return load_storage(m);
    case 'R':
      return reduce(m);
    default:
      return not_pytorch();
  }
}

static assay_status_t unpickle(evaluator_t* m) {
  if (m->end - m->p < 2 || m->p[0] != 0x80 || m->p[1] != 2) return not_pytorch();
  for (m->p += 2; m->p < m->end;) {
    const uint8_t op = *m->p++;
    if (op == '.') return m->n == 1 ? NULL : not_pytorch();
    ASSAY_TRY(step(m, op));
  }
  return broken();
}

// ---- the archive -------------------------------------------------------------------------------

// Elements in row-major order from a storage of any strides.
static assay_status_t gather(const found_t* f, const uint8_t* bytes, uint64_t size,
                             assay_tensor_t** out) {
  const int64_t elem = assay_type_bits(f->type) / 8;
  int64_t n = 0, last = f->offset, capacity;
  bool fits = assay_dims_size(f->rank, f->dims, &n);
  for (int i = 0; fits && n && i < f->rank; i++)
    fits = assay_mul_i64(f->dims[i] - 1, f->strides[i], &capacity) &&
           assay_add_i64(last, capacity, &last);
  if (!fits || (n && (uint64_t)last >= size / (uint64_t)elem))
    return ASSAY_ERROR(ASSAY_CORRUPT, "the PyTorch tensor reaches past the end of its storage");
  // Strides of 0 make many elements of few bytes.
  if ((uint64_t)n > size / (uint64_t)elem)
    return ASSAY_ERROR(ASSAY_UNSUPPORTED,
                       "the PyTorch tensor is an expanded one; save a copy of it");
  assay_tensor_t* t = NULL;
  ASSAY_TRY(assay_tensor_create_packed(f->type, f->rank, f->dims, &t));
  int64_t where[ASSAY_MAX_RANK] = {0}, from = f->offset;
  uint8_t* to = t->data;
  for (int64_t i = 0; i < n; i++, to += elem) {
    memcpy(to, bytes + from * elem, (size_t)elem);
    for (int d = f->rank - 1; d >= 0; d--) {
      from += f->strides[d];
      if (++where[d] < f->dims[d]) break;
      from -= f->strides[d] * f->dims[d];
      where[d] = 0;
    }
  }
  *out = t;
  return NULL;
}

static bool ends_with(const char* name, const char* folder, const char* tail) {
  const size_t n = strlen(name), k = strlen(folder) + strlen(tail);
  return n > k && name[n - k - 1] == '/' && memcmp(name + n - k, folder, strlen(folder)) == 0 &&
         strcmp(name + n - strlen(tail), tail) == 0;
}

static const assay_zip_member_t* find(const assay_zip_t* zip, const char* folder,
                                      const char* tail) {
  for (size_t i = 0; i < zip->n; i++)
    if (ends_with(zip->members[i].name, folder, tail)) return &zip->members[i];
  return NULL;
}

bool assay_torch_is(const uint8_t* data, size_t size) {
  assay_zip_t zip = {0};
  if (size < 4 || memcmp(data, "PK\3\4", 4) != 0) return false;
  assay_status_t st = assay_zip_open(data, size, &zip);
  const bool is = !st && find(&zip, "", "data.pkl");
  assay_status_free(st);
  assay_zip_close(&zip);
  return is;
}

static assay_status_t read_pickle(const uint8_t* data, const assay_zip_t* zip, evaluator_t* m) {
  const assay_zip_member_t* member = find(zip, "", "data.pkl");
  const uint8_t* bytes = NULL;
  if (!member) return ASSAY_ERROR(ASSAY_CORRUPT, "it is not a PyTorch file: data.pkl is missing");
  if (member->size > MAX_PICKLE) return not_pytorch();
  ASSAY_TRY(assay_zip_extract(data, NULL, member, &bytes, &m->owned));
  m->p = bytes;
  m->end = bytes + member->size;
  return unpickle(m);
}

static assay_status_t read_order(const uint8_t* data, const assay_zip_t* zip) {
  const assay_zip_member_t* member = find(zip, "", "byteorder");
  const uint8_t* bytes = NULL;
  void* owned = NULL;
  if (!member) return NULL;
  ASSAY_TRY(assay_zip_extract(data, NULL, member, &bytes, &owned));
  const bool little = member->size == 6 && memcmp(bytes, "little", 6) == 0;
  assay_free(owned);
  if (little) return NULL;
  return ASSAY_ERROR(ASSAY_UNSUPPORTED, "the PyTorch file is of a big-endian machine");
}

static assay_status_t read_tensor(const uint8_t* data, const assay_zip_t* zip, const found_t* f,
                                  assay_tensor_t** out) {
  const assay_zip_member_t* member = find(zip, "data/", f->key);
  const uint8_t* bytes = NULL;
  void* owned = NULL;
  if (!member) return ASSAY_ERROR(ASSAY_CORRUPT, "the PyTorch file has no storage '%s'", f->key);
  ASSAY_TRY(assay_zip_extract(data, NULL, member, &bytes, &owned));
  assay_status_t st = gather(f, bytes, member->size, out);
  assay_free(owned);
  return st;
}

// The tensors of the dictionary, which holds nothing else.
static assay_status_t read_entries(const uint8_t* data, const assay_zip_t* zip,
                                   const evaluator_t* m, int64_t dict, assay_set_t* out) {
  for (size_t i = 0; i < m->n_entries; i++) {
    const entry_t* e = &m->entries[i];
    assay_str_t name = {0};
    assay_tensor_t* t = NULL;
    if (e->dict != dict) continue;
    if (e->tensor < 0) return not_pytorch();
    assay_str_append_n(&name, e->key, e->len);
    assay_status_t st = assay_str_status(&name);
    if (!st) st = read_tensor(data, zip, &m->found[e->tensor], &t);
    if (!st) st = assay_set_add(out, assay_str_get(&name), t);
    assay_str_deinit(&name);
    if (st) return st;
  }
  return out->n ? NULL : not_pytorch();
}

static assay_status_t read_archive(const uint8_t* data, const assay_zip_t* zip, evaluator_t* m,
                                   assay_set_t* out, bool* out_named) {
  ASSAY_TRY(read_order(data, zip));
  ASSAY_TRY(read_pickle(data, zip, m));
  const item_t* top = &m->stack[0];
  assay_tensor_t* t = NULL;
  *out_named = top->kind == DICT;
  if (*out_named) return read_entries(data, zip, m, top->number, out);
  if (top->kind != TENSOR) return not_pytorch();
  ASSAY_TRY(read_tensor(data, zip, &m->found[top->number], &t));
  return assay_set_add(out, "", t);
}

assay_status_t assay_torch_read(const uint8_t* data, size_t size, assay_set_t* out,
                                bool* out_named) {
  assay_zip_t zip = {0};
  evaluator_t m = {0};
  assay_set_t set = {0};
  assay_status_t st = assay_zip_open(data, size, &zip);
  if (!st) st = read_archive(data, &zip, &m, &set, out_named);
  evaluator_deinit(&m);
  assay_zip_close(&zip);
  if (st) return assay_set_deinit(&set), st;
  *out = set;
  return NULL;
}

assay_status_t assay_torch_parse(const uint8_t* data, size_t size, assay_tensor_t** out) {
  assay_set_t set = {0};
  bool named;
  ASSAY_TRY(assay_torch_read(data, size, &set, &named));
  assay_tensor_t* t = named ? NULL : assay_tensor_retain(set.tensors[0]);
  assay_set_deinit(&set);
  if (!t) return not_pytorch();
  *out = t;
  return NULL;
}

assay_status_t assay_torch_unpickle(const uint8_t* data, size_t size, assay_tensor_t** out) {
  static const uint8_t zeros[64];
  evaluator_t m = {.p = data, .end = data + size};
  assay_status_t st = unpickle(&m);
  if (!st && m.stack[0].kind != TENSOR) st = not_pytorch();
  if (!st) st = gather(&m.found[m.stack[0].number], zeros, sizeof zeros, out);
  evaluator_deinit(&m);
  return st;
}
