// Schemas of operators outside the onnx package, from the text in their rows. Used by schema.c.
//
//   "X:T, bias?:T, rest*:T -> Y:T, mask?:U | alpha:f=0.5, axis:i!, mode:s=linear, shape:is |
// T=FLOAT; U=int32 int64"
//
//   parameters  name:type; `?` optional, `*` variadic; type is a variable or a type name
//   attributes  name:kind; kinds i f s t g is fs ss; `!` required, `=` default
//   variables   sets of ONNX type names, FLOAT (float16 float double bfloat16), INT (8 to 64 bit),
// F8,
//               ALL (every tensor type), seq(type)
#ifndef ASSAY_OPS_SCHEMA_TEXT_H_
#define ASSAY_OPS_SCHEMA_TEXT_H_

#include "ops/schema.h"

const assay_schema_t* assay_schema_text_find(const char* domain, const char* name, int64_t version);
int assay_schema_text_newest(const char* domain);

// Parses one text; domain and name are borrowed. NULL: out of memory, or *out_error says what is
// wrong with the text.
const assay_schema_t* assay_schema_text_parse(const char* domain, const char* name, int since,
                                              const char* text, const char** out_error);
void assay_schema_text_free(const assay_schema_t* s);

#endif  // ASSAY_OPS_SCHEMA_TEXT_H_
