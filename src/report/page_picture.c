/* Pictures from files. They become data URLs of <img>: there an SVG cannot run scripts, and its ids cannot
 * clash with those of another. */
#include "base/file.h"
#include "base/memory.h"
#include "base/status.h"
#include "report/page.h"

#include <stdio.h>
#include <string.h>

enum { MOST_BYTES = 16 << 20 };

static const char *type_of(const char *path) {
  const char *dot = strrchr(path, '.');
  if (dot && !strcmp(dot, ".svg")) return "image/svg+xml";
  if (dot && !strcmp(dot, ".png")) return "image/png";
  return NULL;
}

/* Reads a whole file into *out, which the caller frees. */
static dvbf_status read_all(unsigned char **out, size_t *size, const char *path, dvbf_error *error) {
  FILE *file = dv_open_file(path, error);
  if (!file) return DVBF_IO;
  unsigned char *bytes = dv_calloc(MOST_BYTES + 1, 1);
  size_t count = bytes ? fread(bytes, 1, MOST_BYTES + 1, file) : 0;
  bool failed = ferror(file);
  fclose(file);
  dvbf_status status = DVBF_OK;
  if (!bytes)
    status = dv_fail(error, DVBF_MEMORY, "out of memory while reading %.200s", path);
  else if (failed)
    status = dv_fail(error, DVBF_IO, "%.200s: cannot be read", path);
  else if (!count || count > MOST_BYTES)
    status = dv_fail(error, DVBF_FORMAT, "%.200s: a picture of 1 to %d bytes is needed", path, MOST_BYTES);
  if (status) {
    dv_free(bytes);
    return status;
  }
  *out = bytes;
  *size = count;
  return DVBF_OK;
}

/* Adds a picture as a data URL. */
static dvbf_status add_url(dv_markup *m, const char *path, dvbf_error *error) {
  const char *type = type_of(path);
  unsigned char *bytes = NULL;
  size_t size = 0;
  if (!type) return dv_fail(error, DVBF_ARGUMENT, "%.200s: a picture's name must end in .svg or .png", path);
  dvbf_status status = read_all(&bytes, &size, path, error);
  if (status) return status;
  dv_markup_format(m, "data:%s;base64,", type);
  dv_markup_base64(m, bytes, size);
  dv_free(bytes);
  return DVBF_OK;
}

dvbf_status dv_page_picture(dvbf_page *page, const char *path, const char *narrow, const char *caption,
                            const char *alternative, dvbf_error *error) {
  dv_page_mark mark = dv_page_begin(page);
  dv_markup *m = &page->body;
  dvbf_status status = DVBF_OK;
  dv_markup_raw(m, narrow
                       ? "<figure class=\"picture\"><picture><source media=\"(max-width: 34rem)\" srcset=\""
                       : "<figure class=\"picture\">");
  if (narrow) {
    status = add_url(m, narrow, error);
    dv_markup_raw(m, "\">");
  }
  dv_markup_raw(m, "<img alt=\"");
  dv_markup_text(m, alternative);
  dv_markup_raw(m, "\" src=\"");
  if (!status) status = add_url(m, path, error);
  dv_markup_raw(m, narrow ? "\"></picture>\n" : "\">\n");
  dv_markup_element(m, "figcaption", caption);
  dv_markup_raw(m, "</figure>\n");
  return dv_page_end(page, mark, status, error);
}

dvbf_status dvbf_page_picture(dvbf_page *page, const char *path, const char *caption, const char *alternative,
                              dvbf_error *error) {
  return dv_page_picture(page, path, NULL, caption, alternative, error);
}
