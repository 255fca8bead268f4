/* Files of settings, line by line. */
#include "files.h"

#include <dvbf/dvbf.h>

static char message[sizeof((dvbf_error *)0)->message];

/* Reads a file of those bytes; "" or the sentence of the failure goes into `message`. */
static dvbf_status read_text(dvbf_settings *settings, const char *text, size_t size) {
  dvbf_error error = {.message = ""};
  write_bytes(in_folder("settings.txt"), text, size);
  dvbf_status status = dvbf_settings_read(settings, in_folder("settings.txt"), &error);
  memcpy(message, error.message, sizeof message);
  return status;
}

static void assert_value(const dvbf_settings *settings, const char *name, const char *value) {
  char found[256];
  assert_int_equal(dvbf_settings_get(settings, name, found, sizeof found, NULL), DVBF_OK);
  assert_string_equal(found, value);
}

static dvbf_settings *new_settings(void) {
  dvbf_settings *settings = NULL;
  assert_int_equal(dvbf_settings_new(&settings, "train", NULL), DVBF_OK);
  return settings;
}

/* What a comment holds is no setting, however long the comment is. */
static void comments_are_skipped(void **state) {
  (void)state;
  enum { LONG = 3000 };
  for (int place = 1000; place < 1050; place++) {
    char text[2 * LONG];
    dvbf_settings *settings = new_settings();
    memset(text, 'x', sizeof text);
    memcpy(text, "latent = 5 # ", 13);
    memcpy(text + place, " latent = 7 ", 12); /* where a reader with a short buffer would begin anew */
    memcpy(text + LONG, "\n  hidden=9\r", 12);
    if (read_text(settings, text, LONG + 12)) fail_msg("%s", message);
    assert_value(settings, "latent", "5");
    assert_value(settings, "hidden", "9");
    dvbf_settings_free(settings);
  }
}

/* Settings that only some densities have are in a file only where they are not the default. */
static void settings_of_densities(void **state) {
  (void)state;
  for (int given = 0; given < 2; given++) {
    char text[1 << 14] = "";
    dvbf_settings *settings = new_settings(), *again = new_settings();
    if (given) assert_int_equal(dvbf_settings_set(settings, "categories", "3,5", NULL), DVBF_OK);
    assert_int_equal(dvbf_settings_write(settings, in_folder("settings.txt"), NULL), DVBF_OK);
    FILE *file = fopen(in_folder("settings.txt"), "r");
    assert_non_null(file);
    assert_true(fread(text, 1, sizeof text - 1, file) > 0);
    fclose(file);
    assert_int_equal(strstr(text, "categories") != NULL, given);
    assert_int_equal(dvbf_settings_read(again, in_folder("settings.txt"), NULL), DVBF_OK);
    assert_value(again, "categories", given ? "3,5" : "");
    dvbf_settings_free(again);
    dvbf_settings_free(settings);
  }
}

static void bad_lines_are_refused(void **state) {
  (void)state;
  char text[3000];
  dvbf_settings *settings = new_settings();
  memset(text, ' ', sizeof text);
  memcpy(text, "# one\n\nlatent = 5", 17);
  memcpy(text + sizeof text - 5, "7\n\n\n\n", 5);
  assert_int_equal(read_text(settings, text, sizeof text), DVBF_FORMAT);
  assert_non_null(strstr(message, "line 3"));
  assert_int_equal(read_text(settings, "latent\n", 7), DVBF_FORMAT);
  assert_non_null(strstr(message, "\"latent\" is not of the form name = value"));
  assert_int_equal(read_text(settings, "latent = 5\0 7\n", 14), DVBF_FORMAT);
  assert_int_equal(read_text(settings, "= 5\n", 4), DVBF_ARGUMENT);
  assert_int_equal(read_text(settings, "latent =\n", 9), DVBF_ARGUMENT);
  dvbf_settings_free(settings);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(comments_are_skipped),
      cmocka_unit_test(settings_of_densities),
      cmocka_unit_test(bad_lines_are_refused),
  };
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
