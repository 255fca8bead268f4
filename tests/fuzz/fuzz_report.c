/* What a report shows of a run folder's files: curves of metrics.csv, the table of search.csv. The first byte
 * says which. */
#include "input.h"
#include "mutate.h"
#include "report/page.h"
#include "report/report.h"
#include "run.h"

static dvbf_model *model;

static void begin(void) {
  char path[128];
  make_run();
  if (dvbf_model_load(&model, run_file(path, DVBF_RUN_MODEL), NULL)) abort();
}

static void end(void) {
  dvbf_model_free(model);
}

static void write_input(const char *name, const uint8_t *bytes, size_t size) {
  char path[128];
  FILE *file = fopen(run_file(path, name), "wb");
  if (!file || fwrite(bytes, 1, size, file) != size || fclose(file)) abort();
}

/* Text of a file stays text: no page of ours has the element <i>, which is a word of the fuzzer. */
static void check(const dv_markup *body) {
  if (body->length && memmem(body->text, body->length, "<i>", 3)) abort();
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size) {
  dvbf_page *page = NULL;
  dvbf_error error = {.message = ""};
  const dvbf_data data = {0};
  if (size < 2) return 0;
  if (!model) begin(), atexit(end);
  const dv_section chapter = {
      .name = "run", .model = model, .data = &data, .run = run_folder, .figures = run_folder};
  bool search = bytes[0] % 2;
  write_input(search ? DVBF_RUN_SEARCH : DVBF_RUN_METRICS, bytes + 1, size - 1);
  if (dvbf_page_new(&page, "run", &error)) abort();
  begin_faults();
  bool failed = search ? dv_section_search(page, &chapter, NULL, &error)
                       : dv_section_curves(page, &chapter, NULL, &error);
  /* What cannot be read or drawn is left out; the report goes on. */
  if (failed && (!may_fail() || !error.message[0])) abort();
  check(&page->body);
  dvbf_page_free(page);
  return 0;
}

#ifdef FUZZING
size_t LLVMFuzzerCustomMutator(uint8_t *bytes, size_t size, size_t most, unsigned seed) {
  if (size < 2 || seed % 16 == 0) return LLVMFuzzerMutate(bytes, size, most);
  return 1 + mutate_csv(bytes + 1, size - 1, most - 1, seed / 16);
}
#endif
