/* Checkpoints (dv_checkpoint_write, dv_checkpoint_read): the complete state of training as safetensors.
 * Counters are decimal and real numbers the hexadecimal digits of their bits, so a resumed run ends like an
 * uninterrupted one. */
#include "train/run_folder.h"

#include "base/error.h"
#include "base/memory.h"
#include "engine/kernels.h"
#include "model/safetensors.h"
#include "train/updater.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const char FORMAT[] = "dvbf checkpoint 1";

enum { STATE_FIELDS = 40, TENSORS = 10 };

/* ---- Memory ---- */

dvbf_status dv_training_init(dv_training *s, size_t parameters, size_t snapshot, dvbf_error *error) {
  *s = (dv_training){.bound = NAN, .scores = {NAN, NAN, NAN, NAN, NAN, NAN}};
  s->best = dv_calloc(parameters, sizeof *s->best);
  s->now = dv_calloc(snapshot, 1);
  s->good = dv_calloc(snapshot, 1);
  s->judged = dv_calloc(snapshot, 1);
  return s->best && s->now && s->good && s->judged ? DVBF_OK : dv_fail_memory(error, "preparing training");
}

void dv_training_clear(dv_training *s) {
  DV_FREE(s->best, s->now, s->good, s->judged);
}

/* ---- Fields ---- */

/* A number of the state: `count` or `real`, in [low, high]. */
typedef struct resumed {
  char name[24];
  uint64_t *count;
  double *real;
  double low, high;
  bool nan;      /* may be NaN */
  bool optional; /* is 0 if it is missing, and missing if it is 0 */
} resumed;

static const double HUGE_COUNT = 9e15, HUGE_REAL = 1e300;

static void add(resumed *list, int *n, const char *name, resumed f) {
  list[*n] = f;
  snprintf(list[(*n)++].name, sizeof f.name, "%s", name);
}

#define COUNT(name, least, most) add(out, &n, #name, (resumed){.count = &s->name, .low = least, .high = most})
#define OPTIONAL(name, most) add(out, &n, #name, (resumed){.count = &s->name, .high = most, .optional = true})
#define REAL(name, least, most) add(out, &n, #name, (resumed){.real = &s->name, .low = least, .high = most})
#define SCORE(name, at, least, most)                                                                         \
  add(out, &n, name, (resumed){.real = &s->at, .low = least, .high = most, .nan = true})

static int list_numbers(dv_training *s, const dv_train_settings *set, resumed out[STATE_FIELDS]) {
  int n = 0;
  double updates = (double)dv_all_updates(set), last = (double)set->starts - 1,
         retries = (double)set->retries;
  COUNT(phase, DV_JUDGING, set->gain_updates ? DV_SPREAD : DV_FINISHED);
  COUNT(start, 0, last);
  COUNT(begun, 1, last + 1);
  COUNT(retries_left, 0, retries);
  COUNT(validations, 0, HUGE_COUNT);
  COUNT(best_update, 0, updates);
  REAL(best_score, -HUGE_REAL, HUGE_REAL);
  REAL(best_floor, -1e6, 1e6);
  COUNT(judged_start, 0, last);
  COUNT(judged_retries, 0, retries);
  SCORE("judged_prediction", judged_prediction, 0, INFINITY);
  SCORE("bound", bound, -INFINITY, INFINITY);
  SCORE("valid_bound", scores.bound, -HUGE_REAL, HUGE_REAL);
  SCORE("valid_reconstruction", scores.reconstruction, -HUGE_REAL, HUGE_REAL);
  SCORE("valid_kl_w", scores.kl_w, -HUGE_REAL, HUGE_REAL);
  SCORE("valid_kl_v", scores.kl_v, -HUGE_REAL, HUGE_REAL);
  SCORE("valid_prediction", scores.prediction, 0, INFINITY);
  if (set->gain_updates) SCORE("valid_one_step", scores.one_step, 0, INFINITY);
  REAL(seconds, 0, HUGE_REAL);
  REAL(start_seconds, 0, HUGE_REAL);
  OPTIONAL(window, HUGE_COUNT);
  OPTIONAL(eased, last);
  OPTIONAL(judged_window, HUGE_COUNT);
  OPTIONAL(judged_eased, last);
  OPTIONAL(unjudged, 1);
  return n;
}

/* A snapshot that the phase needs. */
typedef struct kept {
  const char *name;
  void *snapshot;
  uint64_t start;
} kept;

/* A finished run needs a snapshot only to be extended. Only later starts are compared with an earlier, judged
 * one. */
static int list_snapshots(const dv_training *s, kept out[3]) {
  const kept first = {"first", s->judged, s->start};
  bool later = s->phase != DV_JUDGING && s->extendable;
  out[0] = s->phase == DV_FINISHED ? first : (kept){"now", s->now, s->start};
  if (s->phase == DV_FINISHED) return later;
  out[1] = (kept){"good", s->good, s->start};
  out[2] = later ? first : (kept){"judged", s->judged, s->judged_start};
  return later || (s->phase == DV_JUDGING && s->start > 0 && !s->unjudged) ? 3 : 2;
}

static void list_counters(const kept *k, const dvbf_model *m, resumed *out, int *n) {
  static const char *const names[] = {"update", "rate_factor", "usual_norm"};
  dv_counters *at = dv_snapshot_open(k->snapshot, m->parameters.size).at;
  const resumed fields[] = {{.count = &at->update, .high = (double)dv_all_updates(m->settings)},
                            {.real = &at->rate_factor, .low = 1e-31, .high = 1},
                            {.real = &at->usual_norm, .high = HUGE_REAL}};
  for (int i = 0; i < 3; i++) {
    char name[24];
    snprintf(name, sizeof name, "%s.%s", k->name, names[i]);
    add(out, n, name, fields[i]);
  }
}

static int list_tensors(const dv_training *s, const dvbf_model *m, dv_tensor out[TENSORS]) {
  static const char *const arrays[] = {"parameters", "m", "v"};
  kept snapshots[3];
  size_t size = m->parameters.size;
  int n = 0, count = list_snapshots(s, snapshots);
  if (s->best_update) out[n++] = dv_tensor_real("best.parameters", 1, size, s->best);
  for (int i = 0; i < count; i++)
    for (int k = 0; k < 3; k++) {
      char name[32];
      snprintf(name, sizeof name, "%s.%s", snapshots[i].name, arrays[k]);
      out[n] = dv_tensor_real(name, 1, size, dv_snapshot_open(snapshots[i].snapshot, size).arrays[k]);
      out[n++].infinite = k > 0; /* the optimiser squares gradients, which may overflow without harm */
    }
  return n;
}

void dv_training_share(dv_training *s, dv_ranks *team, size_t parameters, size_t snapshot) {
  dv_ranks_broadcast(team, s, offsetof(dv_training, best));
  dv_ranks_broadcast(team, s->best, parameters * sizeof *s->best);
  dv_ranks_broadcast(team, s->now, snapshot);
  dv_ranks_broadcast(team, s->good, snapshot);
  dv_ranks_broadcast(team, s->judged, snapshot);
}

bool dv_training_sound(const dv_training *s, const dvbf_model *m) {
  dv_tensor tensors[TENSORS];
  int n = list_tensors(s, m, tensors);
  for (int i = 0; i < n; i++)
    if (dv_tensor_flaw(&tensors[i]) < tensors[i].cols) return false;
  return s->phase == DV_FINISHED || isfinite(dv_snapshot_open(s->now, m->parameters.size).at->usual_norm);
}

/* ---- Writing ---- */

static bool set_fields(json_t *meta, const resumed *fields, int n) {
  bool done = true;
  for (int i = 0; done && i < n; i++) {
    uint64_t bits;
    if (fields[i].optional && !*fields[i].count) continue;
    if (fields[i].count) {
      done = dv_meta_set(meta, fields[i].name, "%" PRIu64, *fields[i].count);
    } else {
      memcpy(&bits, fields[i].real, sizeof bits);
      done = dv_meta_set(meta, fields[i].name, "%016" PRIx64, bits);
    }
  }
  return done;
}

/* Reading and writing use the same list of fields, so the state is not const. */
static int list_all(dv_training *s, const dvbf_model *m, resumed out[STATE_FIELDS]) {
  kept snapshots[3];
  int n = list_numbers(s, m->settings, out), count = list_snapshots(s, snapshots);
  for (int i = 0; i < count; i++) list_counters(&snapshots[i], m, out, &n);
  return n;
}

dvbf_status dv_checkpoint_write(const dv_training *state, const dvbf_model *m, const dvbf_settings *settings,
                                uint64_t data, const char *path, dvbf_error *error) {
  dv_training s = *state;
  resumed fields[STATE_FIELDS];
  dv_tensor tensors[TENSORS];
  json_t *meta = json_object();
  bool done = dv_meta_set_kind(meta, m, FORMAT) && dv_meta_set(meta, "data", "%016" PRIx64, data) &&
              dv_meta_set(meta, "instructions", "%s", dv_build_instructions()) &&
              dv_meta_set(meta, "compiler", "%s", dv_build_compiler()) &&
              set_fields(meta, fields, list_all(&s, m, fields)) && dv_meta_set_settings(meta, settings);
  if (!done) {
    json_decref(meta);
    return dv_fail_memory(error, "writing a checkpoint");
  }
  return dv_tensors_write(path, meta, tensors, list_tensors(&s, m, tensors), error);
}

/* ---- Reading ---- */

/* Accepts only digits of base 10 or 16. */
static bool read_digits(const char *text, int base, size_t least, size_t most, uint64_t *out) {
  static const char digits[] = "0123456789abcdef";
  size_t length = text ? strlen(text) : 0;
  *out = 0;
  if (length < least || length > most) return false;
  for (; *text; text++) {
    const char *digit = strchr(digits, *text);
    if (!digit || digit - digits >= base) return false;
    *out = *out * (uint64_t)base + (uint64_t)(digit - digits);
  }
  return true;
}

static dvbf_status read_field(const dv_tensor_file *file, const resumed *f, dvbf_error *error) {
  const char *text = dv_meta_get(file, f->name);
  uint64_t bits;
  if (f->optional && !text) {
    *f->count = 0;
    return DVBF_OK;
  }
  bool read = f->count ? read_digits(text, 10, 1, 18, &bits) : read_digits(text, 16, 16, 16, &bits);
  double value = (double)bits;
  if (!f->count) memcpy(&value, &bits, sizeof value);
  bool inside = (value >= f->low && value <= f->high) || (f->nan && isnan(value));
  if (!read || !inside)
    return dv_fail(error, DVBF_FORMAT,
                   "%.200s: its %s = \"%.40s\" is not %s in [%g, %g]; it is damaged: start again with force",
                   file->path, f->name, text ? text : "",
                   f->count ? "a whole number" : "a number as 16 digits", f->low, f->high);
  if (f->count)
    *f->count = bits;
  else
    *f->real = value;
  return DVBF_OK;
}

static dvbf_status read_fields(const dv_tensor_file *file, const resumed *fields, int n, dvbf_error *error) {
  dvbf_status status = DVBF_OK;
  for (int i = 0; !status && i < n; i++) status = read_field(file, &fields[i], error);
  return status;
}

dvbf_status dv_refuse_change(const dvbf_settings *given, const dvbf_settings *of_run, const char *where,
                             dvbf_error *error) {
  dv_setting_change change;
  if (!dv_settings_differ(given, of_run, NULL, &change)) return DVBF_OK;
  const dv_train_settings *run = dv_settings_train(of_run, NULL);
  if (!strcmp(change.name, "updates") && run->search &&
      dv_settings_train(given, NULL)->updates > run->updates)
    return dv_fail(error, DVBF_ARGUMENT,
                   "updates = %.60s: the run in %.200s is a search, whose candidates are not trained "
                   "further; start again in another folder or with --force",
                   change.one, where);
  return dv_fail(error, DVBF_ARGUMENT,
                 "%s = %.60s: the run in %.200s was started with %s = %.60s; continue with that, or start "
                 "again in another folder or with --force",
                 change.name, change.one, where, change.name, change.other);
}

bool dv_extends(const dvbf_settings *given, const dvbf_settings *of_run) {
  dv_setting_change change;
  const dv_train_settings *run = dv_settings_train(of_run, NULL), *more = dv_settings_train(given, NULL);
  return more->updates > run->updates && !run->search &&
         !dv_settings_differ(given, of_run, "updates", &change);
}

/* Only a finished run may get more updates. It keeps the state at the end of the first phase, goes on from
 * there with the schedule of the new number, and repeats the last phase. */
static dvbf_status refuse_other_settings(uint64_t *planned, const dv_tensor_file *file, const dvbf_model *m,
                                         dvbf_error *error) {
  dvbf_settings *settings = NULL;
  dvbf_status status = dvbf_settings_new(&settings, "train", error);
  if (!status) status = dv_meta_read_settings(file, settings, error);
  bool more = !status && dv_extends(m->settings_object, settings);
  if (!status) *planned = (uint64_t)dv_settings_train(settings, NULL)->updates;
  const char *phase = dv_meta_get(file, "phase");
  uint64_t number;
  if (more && (!read_digits(phase, 10, 1, 18, &number) || number != DV_FINISHED))
    status =
        dv_fail(error, DVBF_ARGUMENT,
                "updates = %lld: %.200s belongs to a run that has not finished its %lld updates; resume it "
                "first without updates, and then give it more",
                (long long)m->settings->updates, file->path, (long long)*planned);
  if (!status && !more) status = dv_refuse_change(m->settings_object, settings, file->path, error);
  dvbf_settings_free(settings);
  return status;
}

/* Equal or unknown values do not differ: older checkpoints have neither. */
static bool differs(const dv_tensor_file *file, const char *key, const char *here) {
  const char *there = dv_meta_get(file, key);
  return there && strcmp(there, here) != 0;
}

/* Rounding depends on the order of operations, which instructions and compilers choose. */
static dvbf_status refuse_other_machine(bool *moved, const dv_tensor_file *file, const dvbf_model *m,
                                        dvbf_error *error) {
  const char *instructions = dv_build_instructions(), *compiler = dv_build_compiler();
  bool other = differs(file, "instructions", instructions), made = differs(file, "compiler", compiler);
  *moved = other || made;
  if (!*moved || m->settings->other_machine) return DVBF_OK;
  return dv_fail(error, DVBF_ARGUMENT,
                 "%.200s: the run was started with %s %.60s, but here it is %.60s, so the model would not be "
                 "bit-identical; %s, or continue anyway with other-machine = on",
                 file->path, other ? "the instruction set" : "the compiler",
                 dv_meta_get(file, other ? "instructions" : "compiler"), other ? instructions : compiler,
                 other ? "set DVBF_ISA if the processor has both" : "use that build");
}

static dvbf_status refuse_other_run(uint64_t *planned, const dv_tensor_file *file, const dvbf_model *m,
                                    uint64_t data, dvbf_error *error) {
  const char *transition = dv_meta_get(file, "transition"), *own = m->transition ? m->transition->name : "";
  uint64_t found;
  if (!read_digits(dv_meta_get(file, "data"), 16, 16, 16, &found) || found != data)
    return dv_fail(error, DVBF_ARGUMENT,
                   "%.200s: the run was started on other data%s (checksum %.16s, not %016" PRIx64
                   "); continue with those, or start again in another folder or with --force",
                   file->path,
                   m->settings->projection > 0 ? ", or on a processor that found different components in them"
                                               : "",
                   dv_meta_get(file, "data") ? dv_meta_get(file, "data") : "none", data);
  if (strcmp(transition ? transition : "", own) != 0)
    return dv_fail(error, DVBF_ARGUMENT, "%.200s: the run has the transition \"%.40s\", not \"%.40s\"",
                   file->path, transition ? transition : "", own);
  return refuse_other_settings(planned, file, m, error);
}

/* Refuses numbers that are in range but contradict each other. */
static dvbf_status refuse_contradiction(const dv_training *s, const dvbf_model *m, const char *path,
                                        dvbf_error *error) {
  kept snapshots[3];
  int count = list_snapshots(s, snapshots);
  bool fits = s->start < s->begun && s->judged_start < s->begun && s->start_seconds <= s->seconds &&
              (s->phase != DV_JUDGING || s->start + 1 == s->begun);
  uint64_t now =
      count > 1 ? dv_snapshot_open(s->now, m->parameters.size).at->update : dv_all_updates(m->settings);
  uint64_t good = count > 1 ? dv_snapshot_open(s->good, m->parameters.size).at->update : 0;
  if (fits && good <= now && s->best_update <= now) return DVBF_OK;
  return dv_fail(error, DVBF_FORMAT,
                 "%.200s: its counters contradict each other; it is damaged: start again with --force", path);
}

static dvbf_status read_state(dv_training *s, const dv_tensor_file *file, const dvbf_model *m,
                              dvbf_error *error) {
  resumed fields[STATE_FIELDS];
  dv_tensor tensors[TENSORS];
  kept snapshots[3];
  dvbf_status status = read_fields(file, fields, list_numbers(s, m->settings, fields), error);
  /* The phase is known now. It decides which other fields must be there. */
  s->extendable = dv_meta_get(file, "first.update");
  if (!status) status = read_fields(file, fields, list_all(s, m, fields), error);
  if (!status) status = refuse_contradiction(s, m, file->path, error);
  if (!status) status = dv_tensors_read(file, tensors, list_tensors(s, m, tensors), error);
  if (status) return status;
  for (int i = 0; i < list_snapshots(s, snapshots); i++)
    dv_snapshot_open(snapshots[i].snapshot, m->parameters.size).at->seed =
        dv_seed_of_start(m->settings, snapshots[i].start);
  return DVBF_OK;
}

dvbf_status dv_checkpoint_read(dv_training *s, const dvbf_model *m, uint64_t data, const char *path,
                               dvbf_error *error) {
  dv_tensor_file file;
  dvbf_status status = dv_tensors_open(&file, path, NULL, FORMAT, "a checkpoint", error);
  if (!status) status = refuse_other_run(&s->planned, &file, m, data, error);
  if (!status) status = refuse_other_machine(&s->moved, &file, m, error);
  if (!status) status = read_state(s, &file, m, error);
  dv_tensors_close(&file);
  return status;
}
