// Operators on strings: text.c, text_ngram.c, text_ms.c; and regular expressions by themselves.
#include "ops/op_case.h"
#include "ops/text/text_case.h"
#include "ops/text/text_regex.h"

static void test_strings(void** state) {
  (void)state;
  static const op_case_t rows[] = {
      {"StringConcat",
       20,
       NULL,
       {"string[2,1] a b", "string[2] x ''"},
       {"string[2,2] ax a bx b"},
       NULL},
      {"StringConcat", 20, NULL, {"string[] a", "string[] b"}, {"string[] ab"}, NULL},
      {"StringConcat", 20, NULL, {"string[0]", "string[1] b"}, {"string[0]"}, NULL},
      {"StringConcat", 20, NULL, {"string[2] a b", "string[3] a b c"}, {NULL}, "broadcast"},
      {"StringNormalizer",
       10,
       "case_change_action=UPPER",
       {"string[3] éß ςώ яж"},
       {"string[3] Éß ΣΏ ЯЖ"},
       NULL},
      {"StringNormalizer",
       10,
       "case_change_action=LOWER",
       {"string[1,2] ÀÉ ЯЖΣ"},
       {"string[1,2] àé яжσ"},
       NULL},
      {"StringNormalizer", 10, "stopwords=ÉTÉ,b", {"string[3] été B c"}, {"string[1] c"}, NULL},
      {"StringNormalizer",
       10,
       "is_case_sensitive=1 stopwords=a",
       {"string[2] A a"},
       {"string[1] A"},
       NULL},
      {"StringNormalizer", 10, "stopwords=a", {"string[1,2] A a"}, {"string[1,1] ''"}, NULL},
      {"StringNormalizer", 10, NULL, {"string[0]"}, {"string[1] ''"}, NULL},
      {"StringNormalizer", 10, NULL, {"string[2,2] a b c d"}, {NULL}, "[1, C]"},
      {"StringNormalizer", 10, "case_change_action=TITLE", {"string[1] a"}, {NULL}, "TITLE"},
      {"StringSplit",
       20,
       "delimiter=-",
       {"string[2] a-b a--"},
       {"string[2,3] a b '' a '' ''", "int64[2] 2 3"},
       NULL},
      {"StringSplit",
       20,
       "delimiter=ab maxsplit=1",
       {"string[1] xabyabz"},
       {"string[1,2] x yabz", "int64[1] 2"},
       NULL},
      {"StringSplit", 20, "maxsplit=0", {"string[] a"}, {"string[1] a", "int64[] 1"}, NULL},
      {"StringSplit", 20, NULL, {"string[2] '' ''"}, {"string[2,0]", "int64[2] 0 0"}, NULL},
      {"StringSplit", 20, "delimiter=,", {"string[1] ''"}, {"string[1,1] ''", "int64[1] 1"}, NULL},
      {"RegexFullMatch", 20, "pattern=a|ab", {"string[3] a ab abc"}, {"bool[3] 1 1 0"}, NULL},
      {"RegexFullMatch", 20, "pattern=(a", {"string[1] a"}, {NULL}, "')' is missing"},
  };
  OP_CASE_RUN(rows);
}

static void test_ngrams(void** state) {
  (void)state;
  static const char attrs[] =
      "mode=TFIDF ngram_counts=0,2 ngram_indexes=2,0,1 pool_int64s=5,6,5,6 weights=2,3,10 "
      "min_gram_length=1 max_gram_length=2 max_skip_count=1";
  static const op_case_t rows[] = {
      // 5 at 0, 6 at 1 and 2; (5, 6) with steps 1 and 2.
      {"TfIdfVectorizer", 9, attrs, {"int64[3] 5 6 6"}, {"float[3] 6 20 2"}, NULL},
      {"TfIdfVectorizer", 9, attrs, {"int64[2,1] 5 9"}, {"float[2,3] 0 0 2 0 0 0"}, NULL},
      {"TfIdfVectorizer", 9, attrs, {"int64[0]"}, {"float[3] 0 0 0"}, NULL},
      {"TfIdfVectorizer", 9, attrs, {"string[1] a"}, {NULL}, "input holds strings"},
      {"TfIdfVectorizer",
       9,
       "mode=TF ngram_counts=0,3 ngram_indexes=0 pool_int64s=5,6,5 min_gram_length=1 "
       "max_gram_length=2 max_skip_count=0",
       {"int64[1] 5"},
       {NULL},
       "more n-grams than"},
      {"TfIdfVectorizer",
       9,
       "mode=TF ngram_counts=0,9 ngram_indexes=0 pool_int64s=5,6,5 min_gram_length=1 "
       "max_gram_length=2 max_skip_count=0",
       {"int64[1] 5"},
       {NULL},
       "ngram_counts[0]"},
      {"TfIdfVectorizer",
       9,
       "mode=TF ngram_counts=0 ngram_indexes=-1 pool_int64s=5 min_gram_length=1 "
       "max_gram_length=1 max_skip_count=0",
       {"int64[1] 5"},
       {NULL},
       "ngram_indexes[0] is -1"},
      {"TfIdfVectorizer",
       9,
       "mode=TF ngram_counts=0 ngram_indexes=0 pool_int64s=5 min_gram_length=1 "
       "max_gram_length=1 max_skip_count=9223372036854775807",
       {"int64[2] 5 5"},
       {"float[1] 2"},
       NULL},
      {"com.microsoft.NGramRepeatBlock",
       1,
       "ngram_size=2",
       {"int64[1,4] 1 2 0 1", "float[1,3] 5 6 7"},
       {"float[1,3] 5 6 -inf"},
       NULL},
      {"com.microsoft.NGramRepeatBlock",
       1,
       "ngram_size=1",
       {"int64[1,1] 9", "float[1,3] 5 6 7"},
       {NULL},
       "token 9"},
  };
  OP_CASE_RUN(rows);
}

static void test_contrib(void** state) {
  (void)state;
  static const op_case_t rows[] = {
      {"com.microsoft.Tokenizer",
       1,
       "mark=0 mincharnum=1 pad_value=# separators=-,x",
       {"string[2] a-bxc d"},
       {"string[2,3] a b c d # #"},
       NULL},
      {"com.microsoft.Tokenizer",
       1,
       "mark=1 mincharnum=2 pad_value=# tokenexp=[a-c]+",
       {"string[1,2] abzc zz"},
       {"string[1,2,3] \x02 ab \x03 \x02 \x03 #"},
       NULL},
      {"com.microsoft.Tokenizer",
       1,
       "mark=0 mincharnum=1 pad_value=# separators=''",
       {"string[1] hé"},
       {"string[1,2] h é"},
       NULL},
      {"com.microsoft.Tokenizer",
       1,
       "mark=0 mincharnum=1 pad_value=#",
       {"string[1] a"},
       {NULL},
       "must be given"},
      {"com.microsoft.MurmurHash3",
       1,
       NULL,
       {"string[2] abc ''"},
       {"uint32[2] 3017643002 0"},
       NULL},
      {"com.microsoft.MurmurHash3",
       1,
       "positive=0 seed=3",
       {"float[2] 1.5 -2"},
       {"int32[2] 2050775717 -935688817"},
       NULL},
      {"com.microsoft.WordConvEmbedding",
       1,
       NULL,
       {"int32[1,2] 1 5", "float[1,1,1,1] 1", "float[1] 0", "float[2,1] 0 1"},
       {NULL},
       "character 5"},
  };
  OP_CASE_RUN(rows);
}

// Full matches in RE2's syntax: 1, 0, or -1 for a pattern that must be refused.
static void test_regex(void** state) {
  (void)state;
  static const struct {
    const char *pattern, *text;
    int matches;
  } rows[] = {
      {"", "", 1},
      {"a|ab|abc", "abc", 1},
      {"^a$", "a", 1},
      {"^a$", "a\n", 0},
      {".", "\n", 0},
      {"(?s).", "\n", 1},
      {"\\s", "\v", 0},
      {"[\\s]", "\t", 1},
      {"\\S", "\v", 1},
      {"[^\\S]", " ", 1},
      {"\\v", "\v", 1},
      {"\\w", "é", 0},
      {"\\pL", "é", 1},
      {"\\p{Greek}+", "αβ", 1},
      {"é?", "", 1},
      {"(?i)É", "é", 1},
      {"a{,2}", "a{,2}", 1},
      {"a{2}", "aa", 1},
      {"a{2,3}?", "aaaa", 0},
      {"\\x41\\101", "AA", 1},
      {"[]a]+", "]a", 1},
      {"[[a]+", "[a", 1},
      {"\\Qa.b\\E+", "a.bb", 1},
      {"x*", "\xff", 0},
      {"(a+)+b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac", 0},
      {"(a|a)*b", "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaac", 0},
      {"(a)\\1", "aa", -1},
      {"(?=a)a", "a", -1},
      {"(?<!b)a", "a", -1},
      {"(?>a)", "a", -1},
      {"a**", "a", -1},
      {"a*+", "a", -1},
      {"*a", "a", -1},
      {"(*UTF)a", "a", -1},
      {"a{1001}", "a", -1},
      {"(a", "a", -1},
      {"a)", "a", -1},
      {"[a", "a", -1},
      {"\\", "", -1},
      {"\\K", "", -1},
      {"\\C", "a", -1},
      {"(?#x)a", "a", -1},
      {"(?R)", "a", -1},
      {"\\x{", "a", -1},
      {"[b-a]", "a", -1},
      {"(?P<n>a)", "a", 1},
  };
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    assay_regex_t* r = NULL;
    bool matches = false;
    assay_status_t st = assay_regex_create(rows[i].pattern, strlen(rows[i].pattern), &r);
    if (!st) st = assay_regex_full_match(r, rows[i].text, strlen(rows[i].text), &matches);
    if ((st ? -1 : matches) != rows[i].matches)
      fail_msg("'%s' on '%s': %d (%s)", rows[i].pattern, rows[i].text, st ? -1 : matches,
               assay_status_message(st));
    assay_status_free(st);
    assay_regex_destroy(r);
  }
}

static void test_utf8(void** state) {
  (void)state;
  static const struct {
    const char* text;
    uint32_t code;
    size_t len;
  } rows[] = {{"a", 'a', 1},
              {"é", 0xE9, 2},
              {"€", 0x20AC, 3},
              {"😀", 0x1F600, 4},
              {"\xC0\x80", ASSAY_BAD_BYTE + 0xC0, 1},
              {"\xED\xA0\x80", ASSAY_BAD_BYTE + 0xED, 1},
              {"\xE2\x82", ASSAY_BAD_BYTE + 0xE2, 1},
              {"\xF4\x90\x80\x80", ASSAY_BAD_BYTE + 0xF4, 1},
              {"\x80", ASSAY_BAD_BYTE + 0x80, 1}};
  for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
    size_t at = 0;
    assert_int_equal(assay_utf8_read(rows[i].text, strlen(rows[i].text), &at), rows[i].code);
    assert_int_equal(at, rows[i].len);
    assay_str_t s = {0};
    assay_utf8_append(&s, rows[i].code);
    assert_int_equal(s.len, rows[i].len);
    assert_memory_equal(s.text, rows[i].text, s.len);
    assay_str_deinit(&s);
  }
  assert_int_equal(assay_char_lower(0x130), 'i');
  assert_int_equal(assay_char_upper(0xDF), 0xDF);
  assert_int_equal(assay_char_upper(0x1F80), 0x1F88);
  assert_int_equal(assay_char_lower(0x10400), 0x10428);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(test_strings), cmocka_unit_test(test_ngrams),
                                     cmocka_unit_test(test_contrib), cmocka_unit_test(test_regex),
                                     cmocka_unit_test(test_utf8)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
