/* The report of a model: a page of one chapter. */
#include "base/settings.h"
#include "base/status.h"
#include "report/chapter.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

static void folder_of(dv_path out, const char *path) {
  snprintf(out, sizeof(dv_path), "%s", path);
  char *slash = strrchr(out, '/');
  if (!slash)
    snprintf(out, sizeof(dv_path), ".");
  else
    slash[slash == out] = 0;
}

/* Refuses what cannot become the report, without touching anything. */
static dvbf_status refuse(const dv_chapter *chapter, const char *path, bool force, dvbf_error *error) {
  struct stat info;
  if (!stat(path, &info) && S_ISDIR(info.st_mode))
    return dv_fail(error, DVBF_IO, "%.300s: is a folder; a report needs the name of a file", path);
  dvbf_status status = dv_refuse_existing(path, force, error);
  return status ? status : dv_chapter_refuse(chapter, force, error);
}

static dvbf_status write_page(const dv_chapter *chapter, const char *title, const char *path,
                              dvbf_error *error) {
  dvbf_page *page = NULL;
  dvbf_status status = dvbf_page_new(&page, title ? title : "Report", error);
  if (!status) status = dv_chapter_add(page, chapter, error);
  if (!status) status = dvbf_page_write(page, path, error);
  dvbf_page_free(page);
  return status;
}

dvbf_status dvbf_report_write(const char *path, const dvbf_model *model, const dvbf_data *data,
                              const dvbf_settings *settings, const dvbf_report_options *options,
                              dvbf_error *error) {
  static const dvbf_report_options none = {0};
  dvbf_error own; /* parts that fail are left out, and the report says why */
  const dvbf_report_options *o = options ? options : &none;
  dv_path folder, figures;
  char split[16] = "";
  dvbf_evaluation *evaluation = NULL;
  dv_chapter chapter = {.name = o->name ? o->name : "Model",
                        .model = model,
                        .data = data,
                        .split = split,
                        .settings = settings,
                        .run = o->run,
                        .figures = figures,
                        .note = o->note,
                        .user_data = o->user_data};
  if (!error) error = &own;
  if (!dv_settings_evaluate(settings, error)) return error->status;
  folder_of(folder, path);
  dv_join(figures, folder, "figures");
  dvbf_status status = refuse(&chapter, path, o->force, error);
  if (!status) status = dvbf_data_split(&chapter.sequences, data, settings, error);
  if (!status) status = dvbf_settings_get(settings, "split", split, sizeof split, error);
  if (!status) status = dvbf_folder_make(folder, error); /* before the work begins */
  if (!status) status = dvbf_folder_make(figures, error);
  if (!status) status = dvbf_evaluate(&evaluation, model, data, chapter.sequences, settings, error);
  chapter.evaluation = evaluation;
  chapter.threads = dvbf_settings_threads(settings);
  chapter.interrupt = dv_settings_interrupt(settings);
  if (!status) status = write_page(&chapter, o->title, path, error);
  dvbf_evaluation_free(evaluation);
  return status;
}
