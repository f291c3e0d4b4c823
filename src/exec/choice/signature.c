// What a layer is, as text: layers with the same signature are run by the same kernels and take the
// same time.
#include "exec/choice/signature.h"

#include "base/hash.h"
#include "base/shown.h"

static void add_text(assay_str_t* out, const char* text, size_t n) {
  // One line, and nothing that stands for something else: what is not plain is hashed.
  for (size_t i = 0; i < n; i++)
    if (text[i] <= ' ' || text[i] > '~' || text[i] == '|' || text[i] == ';') {
      assay_str_printf_raw(out, "#%016llx", (unsigned long long)assay_hash(text, n, 0));
      return;
    }
  assay_str_append_n(out, text, n);
}

static void add_attribute(const assay_attr_t* a, assay_str_t* out) {
  assay_str_printf_raw(out, "%s=", a->name);
  switch (a->type) {
    case ASSAY_ATTR_FLOAT:
      assay_str_printf_raw(out, "%.9g", (double)a->u.f);
      break;
    case ASSAY_ATTR_INT:
      assay_str_printf_raw(out, "%lld", (long long)a->u.i);
      break;
    case ASSAY_ATTR_STRING:
      add_text(out, a->u.s.text, a->u.s.len);
      break;
    case ASSAY_ATTR_FLOATS:
      for (size_t i = 0; i < a->n; i++)
        assay_str_printf_raw(out, "%s%.9g", i ? "," : "", (double)a->u.floats[i]);
      break;
    case ASSAY_ATTR_INTS:
      for (size_t i = 0; i < a->n; i++)
        assay_str_printf_raw(out, "%s%lld", i ? "," : "", (long long)a->u.ints[i]);
      break;
    case ASSAY_ATTR_STRINGS:
      for (size_t i = 0; i < a->n; i++) {
        if (i) assay_str_append(out, ",");
        add_text(out, a->u.strings[i].text, a->u.strings[i].len);
      }
      break;
    default:  // tensors and graphs decide no kernel's speed that their type does not
      assay_str_printf_raw(out, "type%d", (int)a->type);
      break;
  }
}

// i0, i1 ...: an operand; h0.1: output 1 of the layer's first node; -: left out.
static void add_value(const assay_sized_layer_t* l, const assay_value_t* v, assay_str_t* out) {
  const int input = assay_sized_input_index(l, v);
  if (!v) {
    assay_str_append(out, " -");
    return;
  }
  if (input >= 0) {
    assay_str_printf_raw(out, " i%d", input);
    return;
  }
  for (size_t k = 0; k < l->layer->n_nodes; k++)
    if (v->producer == l->layer->nodes[k]) {
      assay_str_printf_raw(out, " h%zu.%d", k, v->output_index);
      return;
    }
  assay_str_append(out, " ?");
}

static void add_operand(const char* name, size_t i, const assay_operand_t* o, assay_str_t* out) {
  assay_str_printf_raw(out, " %s%zu ", name, i);
  if (!o->value) {
    assay_str_append(out, "none;");
    return;
  }
  assay_str_printf_raw(out, "%s[", assay_type_name(o->type));
  for (int d = 0; d < o->rank; d++)
    assay_str_printf_raw(out, "%s%lld", d ? "," : "", (long long)o->dims[d]);
  assay_str_printf_raw(out, "]%s%s;", assay_operand_is_channels_last(o) ? " last" : "",
                       o->constant ? " constant" : "");
}

assay_status_t assay_layer_signature(const assay_sized_layer_t* l, assay_str_t* out) {
  for (size_t k = 0; k < l->layer->n_nodes; k++) {
    const assay_node_t* n = l->layer->nodes[k];
    assay_str_printf_raw(out, "%s%s%s-%d(", *n->domain ? n->domain : "", *n->domain ? "." : "",
                         n->op_type, n->schema ? n->schema->since : 0);
    for (size_t a = 0; a < n->n_attrs; a++) {
      if (a) assay_str_append(out, " ");
      add_attribute(&n->attrs[a], out);
    }
    assay_str_append(out, ")");
    for (size_t i = 0; i < n->n_inputs; i++) add_value(l, n->inputs[i], out);
    assay_str_append(out, "; ");
  }
  assay_str_append(out, "|");
  if (l->layers && l->layers->fp32 && l->layer->format == ASSAY_FORMAT_FP32)
    assay_str_printf_raw(out, " fp32 %s |", assay_fp32_name(l->layers->fp32));
  for (size_t i = 0; i < l->n_in; i++) add_operand("i", i, &l->in[i], out);
  for (size_t i = 0; i < l->n_out; i++) add_operand("o", i, &l->out[i], out);
  return assay_str_status(out);
}
