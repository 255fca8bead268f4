/* No reader passes the end of what it has read, whatever a file holds: memory ends where a page does. */
#include "fence.h"
#include "malformed.h"

#include "base/text.h"

#include <dvbf/dvbf.h>

static void read_one(const malformed *file) {
  dvbf_data *data = NULL;
  dvbf_error error = {.message = ""};
  dvbf_status status = dvbf_data_read(&data, in_folder(file->name), NULL, &error);
  if (file->part && !status) fail_msg("%s was read", file->name);
  dvbf_data_free(data);
  unlink(in_folder(file->name));
}

static void readers_stay_inside(void **state) {
  (void)state;
  each_npy(read_one);
  each_npz(read_one);
  each_csv(read_one);
}

/* Every beginning of a text, without a zero behind it. */
static void cursors_stay_inside(void **state) {
  (void)state;
  static const char text[] = " \t12,{'shape': (99999999999999999999),'s\"x=# ";
  for (size_t n = 1; n < sizeof text; n++) {
    char *copy = __wrap_calloc(n, 1), word[64];
    memcpy(copy, text, n);
    for (size_t from = 0; from <= n; from++) {
      const dv_cursor all = {copy + from, copy + n};
      dv_cursor c = all, item;
      while (dv_cursor_item(&c, &item)) dv_cursor_copy(item, word, sizeof word);
      c = all;
      dv_cursor_until(&c, '|');
      assert_true(dv_cursor_peek(&c) == -1 && !dv_cursor_at_digit(&c) && !dv_cursor_take(&c, '\''));
      c = all;
      dv_cursor_skip(&c, text);
      dv_cursor_pass(&c, 100);
      assert_int_equal(dv_cursor_left(&c), 0);
      c = all;
      dv_cursor_take_text(&c, text);
      dv_cursor_trim(all, text);
      dv_cursor_equals(all, text);
    }
    __wrap_free(copy);
  }
}

/* The fence is there: a byte behind the end cannot be read. */
static void the_fence_is_there(void **state) {
  (void)state;
  char *memory = __wrap_calloc(45, 1);
  unsigned char in_memory[1];
  assert_int_equal((uintptr_t)(memory + 45) % FENCE_PAGE, 0);
  assert_int_equal(mincore(memory + 45, 1, in_memory), 0); /* addresses are taken */
  assert_int_not_equal(write(STDERR_FILENO, memory + 45, 1), 1);
  __wrap_free(memory);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(the_fence_is_there),
                                     cmocka_unit_test(cursors_stay_inside),
                                     cmocka_unit_test(readers_stay_inside)};
  return cmocka_run_group_tests(tests, make_folder, remove_folder);
}
