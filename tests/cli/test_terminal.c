/* Names and sentences from files of strangers: no control character reaches the terminal, equal names stay
 * two, and a name that was cut is still text. */
#include "command.h"

#include "base/error.h"
#include "base/text.h"

#include <hdf5.h>

/* Escape sequences of terminals in either form, bells, and what moves the cursor. */
static void assert_plain(const char *text) {
  for (const unsigned char *at = (const unsigned char *)text; *at; at++)
    if ((*at < ' ' && *at != '\n' && *at != '\t') || *at == 127 || (at[0] == 0xc2 && at[1] && at[1] < 0xa0))
      fail_msg("byte %d of the output is %d: %s", (int)(at - (const unsigned char *)text), *at, text);
}

static void plain_text(void **state) {
  (void)state;
  static const struct {
    const char *from, *to;
  } cases[] = {{"level", "level"},
               {"\x1b[31mred\x07", "?[31mred?"},
               {"two\nlines\r", "two lines "},
               {"\xc2\x9b"
                "2J",
                "??2J"},
               {"\xc3\xa4\xe2\x82\xac\xf0\x9f\x99\x82", "\xc3\xa4\xe2\x82\xac\xf0\x9f\x99\x82"},
               {"cut \xe2\x82", "cut "},
               {"cut \xf0\x9f\x99", "cut "},
               {"\xff\xfe\xed\xa0\x80", "?????"},
               {"\xe2\x82x", "??x"}};
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char text[64];
    snprintf(text, sizeof text, "%s", cases[i].from);
    dv_text_plain(text);
    assert_string_equal(text, cases[i].to);
  }
}

static void equal_names_are_told_apart(void **state) {
  (void)state;
  char names[5][12] = {"a", "a", "a", "a (2)", "123456789\xc3\xa4"};
  char cut[2][12] = {"123456\xc3\xa4xyz", "123456\xc3\xa4xyz"}; /* the cut goes through a character */
  dv_names_tell_apart(names[0], 5, sizeof *names, sizeof *names);
  assert_string_equal(names[0], "a");
  assert_string_equal(names[1], "a (2)");
  assert_string_equal(names[2], "a (3)");
  assert_string_equal(names[3], "a (2) (2)");
  dv_names_tell_apart(cut[0], 2, sizeof *cut, sizeof *cut);
  assert_string_equal(cut[1], "123456 (2)");
}

static void sentences_are_plain(void **state) {
  (void)state;
  dvbf_error error;
  dv_report(&error, DVBF_IO, "%s: cannot be read", "\x1b]0;title\x07.h5");
  assert_string_equal(error.message, "?]0;title?.h5: cannot be read");
}

/* ---- The command ---- */

static void write_hostile(const char *path, const char *array) {
  float x[6 * 10 * 2];
  for (int i = 0; i < 120; i++) x[i] = (float)(i * i % 17);
  hid_t file = H5Fcreate(path, H5F_ACC_TRUNC, H5P_DEFAULT, H5P_DEFAULT);
  hid_t space = H5Screate_simple(3, (hsize_t[]){6, 10, 2}, NULL);
  hid_t id = H5Dcreate2(file, array, H5T_IEEE_F32LE, space, H5P_DEFAULT, H5P_DEFAULT, H5P_DEFAULT);
  assert_true(H5Dwrite(id, H5T_NATIVE_FLOAT, H5S_ALL, H5S_ALL, H5P_DEFAULT, x) >= 0);
  H5Dclose(id);
  H5Sclose(space);
  H5Fclose(file);
}

static void names_of_arrays_do_not_steer(void **state) {
  (void)state;
  write_hostile("a.h5", "x\x1b[2J\xc2\x9b"
                        "31m\rdone");
  dvbf("info a.h5");
  assert_plain(out), assert_plain(err);
  dvbf("info a.h5 --outputs nothing");
  assert_plain(out), assert_plain(err);
  dvbf("train a.h5 -o run --updates 1" TINY_NETS);
  assert_plain(out), assert_plain(err);
}

static void arguments_do_not_steer(void **state) {
  (void)state;
  assert_int_not_equal(dvbf("info \"$(printf 'no\\033[31msuch')\""), 0);
  assert_plain(err);
  assert_non_null(strstr(err, "no?[31msuch"));
}

static void write_table(const char *path, const char *head) {
  FILE *file = fopen(path, "w");
  assert_non_null(file);
  fprintf(file, "%s\n", head);
  for (int i = 0; i < 120; i++)
    fprintf(file, "%d,%d,%d,%d\n", i * i % 11, i % 7, i * i % 5, (i * i + i) % 13);
  fclose(file);
}

/* What is printed besides sentences. */
static void names_of_files_do_not_steer(void **state) {
  (void)state;
  write_table("b\x1b[31m.csv", "x,u,v,w");
  assert_int_equal(dvbf("info \"$(printf 'b\\033[31m.csv')\""), 0);
  assert_plain(out), assert_plain(err);
  assert_non_null(strstr(out, "b?[31m.csv"));
}

/* Two columns of the state with one name: both are in the JSON. */
static void equal_columns_stay_two(void **state) {
  (void)state;
  write_table("a.csv", "x,u,state_a,state_a");
  assert_int_equal(dvbf("train a.csv -o twins --updates 2 --window 10 --initial-frames 2" TINY), 0);
  assert_int_equal(dvbf("evaluate twins a.csv --split all --json"), 0);
  json_t *all = json_loads(out, 0, NULL);
  if (!all) fail_msg("%s", out);
  assert_int_equal(json_object_size(json_object_get(all, "regression")), 2);
  json_decref(all);
  assert_int_equal(dvbf("info a.csv --json"), 0);
  all = json_loads(out, 0, NULL);
  assert_int_equal(json_object_size(json_object_get(all, "parts")), 4);
  json_decref(all);
}

/* 31 bytes end inside a character of two. */
static void cut_names_are_text(void **state) {
  (void)state;
  write_table("a.csv", "x,u,state_aaaaaaaaaaaaaaaaaaaaaaaa\xc3\xa4,state_aaaaaaaaaaaaaaaaaaaaaaaa\xc3\xb6");
  assert_int_equal(dvbf("train a.csv -o cut --updates 2 --window 10 --initial-frames 2" TINY), 0);
  assert_int_equal(dvbf("evaluate cut a.csv --split all --json"), 0);
  json_t *all = json_loads(out, 0, NULL);
  if (!all) fail_msg("%s", out);
  assert_int_equal(json_object_size(json_object_get(all, "regression")), 2);
  json_decref(all);
}

static int set_up(void **state) {
  (void)state;
  return enter_folder();
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(plain_text),
      cmocka_unit_test(equal_names_are_told_apart),
      cmocka_unit_test(sentences_are_plain),
      cmocka_unit_test(names_of_arrays_do_not_steer),
      cmocka_unit_test(arguments_do_not_steer),
      cmocka_unit_test(names_of_files_do_not_steer),
      cmocka_unit_test(equal_columns_stay_two),
      cmocka_unit_test(cut_names_are_text),
  };
  return cmocka_run_group_tests(tests, set_up, tear_down);
}
