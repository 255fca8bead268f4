/* From named arrays to data (dvbf_data_read, dvbf_data_read_files, dvbf_data_from): finds the arrays of each
 * role, decides how sequences are laid out (stacked, one recording, or several behind each other; whole or in
 * the splits train, valid and test), checks shapes, and splits. Splitting comes before values are read, so
 * that a large file is read once. */
#include "io/layout.h"

#include "base/error.h"
#include "base/memory.h"
#include "base/text.h"
#include "io/archive.h"
#include "io/csv.h"
#include "io/frames.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* ---- Names ---- */

/* Default names of the roles, the first found. */
static const char *const usual_names[DV_ROLES][5] = {{"x", "y", "obs", "observations"},
                                                     {"u", "actions", "action"},
                                                     {"state", "states"},
                                                     {"mask"},
                                                     {"length", "lengths"}};

enum { TRAIN, VALID, TEST, WHOLE };
static const char *const split_names[][4] = {{"train"}, {"valid", "val", "validation"}, {"test"}};

static bool allows_nan(const dv_layout *l) {
  return !strcmp(l->how->missing, "nan");
}

dvbf_status dv_layout_keys(const dv_layout *l, dv_role role, dv_keys *out) {
  dv_cursor list = dv_cursor_of(dv_role_text(l->how, role)), item;
  out->count = 0;
  while (dv_cursor_item(&list, &item)) {
    dv_cursor_skip(&item, " /");
    if (out->count == DV_MOST_KEYS || !dv_cursor_left(&item) ||
        !dv_cursor_copy(item, out->names[out->count], sizeof out->names[0]))
      return dv_fail(l->error, DVBF_ARGUMENT, "%s = %.60s: must be 1 to %d names separated by commas",
                     dv_role_setting(role), dv_role_text(l->how, role), DV_MOST_KEYS);
    out->count++;
  }
  return DVBF_OK;
}

/* An array of a split: train/x, train_x, x_train or x/train. */
static const dv_named_array *find_in_split(const dv_layout *l, int split, const char *key) {
  if (split == WHOLE) return dv_archive_find(l->archive, key);
  for (int i = 0; i < 4 && split_names[split][i]; i++)
    for (int order = 0; order < 4; order++) {
      char name[DV_TEXT + 16];
      const char *s = split_names[split][i], *between = order % 2 ? "_" : "/";
      snprintf(name, sizeof name, "%s%s%s", order < 2 ? s : key, between, order < 2 ? key : s);
      const dv_named_array *found = dv_archive_find(l->archive, name);
      if (found) return found;
    }
  return NULL;
}

/* The arrays of a role; it may have none, but not some of several. */
static dvbf_status find_role(const dv_layout *l, int split, dv_role role, dv_group *out) {
  dv_keys keys;
  dvbf_status status = dv_layout_keys(l, role, &keys);
  out->count = 0;
  if (status || (role == DV_ROLE_U && !strcmp(l->how->inputs, "none"))) return status;
  for (int i = 0; !keys.count && !out->count && i < 5 && usual_names[role][i]; i++)
    if ((out->arrays[0] = find_in_split(l, split, usual_names[role][i]))) out->count = 1;
  for (size_t i = 0; i < keys.count; i++) {
    out->arrays[i] = find_in_split(l, split, keys.names[i]);
    if (out->arrays[i]) out->count++;
    if (out->count && out->count <= i)
      return dv_layout_fail(l, "%s names %.64s and %.64s, but only one of them exists", dv_role_setting(role),
                            keys.names[0], keys.names[i]);
  }
  return DVBF_OK;
}

dvbf_status dv_layout_unclear(const dv_layout *l, const char *prefix, const char *format, ...) {
  char problem[200], list[200] = "", shape[96];
  va_list arguments;
  va_start(arguments, format);
  vsnprintf(problem, sizeof problem, format, arguments);
  va_end(arguments);
  size_t used = 0, length = strlen(prefix);
  for (size_t i = 0; i < l->archive->count && used + 40 < sizeof list; i++) {
    const dv_named_array *array = &l->archive->arrays[i];
    if (strncmp(array->name, prefix, length)) continue;
    used += (size_t)snprintf(list + used, sizeof list - used, "%s%s %s", used ? ", " : "",
                             array->name + length, dv_array_shape(array, shape, sizeof shape));
    if (used >= sizeof list - 5) memcpy(list + sizeof list - 4, "...", 4);
  }
  return dv_layout_fail(l, "%s; it holds %s", problem, *list ? list : "no array");
}

/* ---- Shapes ---- */

dvbf_status dv_layout_check(const dv_layout *l, const dv_named_array *array) {
  char shape[96];
  if (!array->trouble) return DVBF_OK;
  return dv_layout_fail(l, "%.64s %s (its shape is %s)", array->name, array->trouble,
                        dv_array_shape(array, shape, sizeof shape));
}

static dvbf_status wrong_shape(const dv_layout *l, const dv_named_array *array, const char *needed) {
  char shape[128];
  return dv_layout_fail(l, "%.64s has the shape %s; it must be %s", array->name,
                        dv_array_shape(array, shape, sizeof shape), needed);
}

dvbf_status dv_layout_take(const dv_layout *l, dv_frames *f, size_t block, dv_role role, size_t part,
                           const dv_named_array *array, int lead) {
  dv_columns *c = &f->columns[role];
  const dv_block *r = &f->block[block];
  dvbf_status status = dv_layout_check(l, array);
  if (status) return status;
  size_t rows = array->rank >= lead ? array->dims[lead - 1] : 0, width = 1;
  bool fits = rows == r->steps || (role == DV_ROLE_U && rows && rows + 1 == r->steps);
  /* Where x may be missing, inputs may be planned beyond its end. */
  fits = fits || (role == DV_ROLE_U && rows > r->steps && !block && allows_nan(l));
  fits = fits && (lead == 1 || array->dims[0] == r->count);
  fits = fits && (role == DV_ROLE_X || role == DV_ROLE_MASK || array->rank <= lead + 1);
  for (int i = lead; i < array->rank; i++) width *= array->dims[i]; /* within `elements` */
  if (!fits) {
    char count[32] = "", needed[160];
    if (lead == 2) snprintf(count, sizeof count, "%zu, ", r->count);
    snprintf(needed, sizeof needed, "[%s%zu, columns] to match %.64s; reshape or pad it", count, r->steps,
             f->columns[DV_ROLE_X].arrays[block * f->columns[DV_ROLE_X].parts]->name);
    return wrong_shape(l, array, needed);
  }
  if (block && width != c->widths[part])
    return dv_layout_fail(l, "%.64s has %zu columns but %.64s has %zu; all must have the same number",
                          array->name, width, c->arrays[part]->name, c->widths[part]);
  const dv_named_array *first = c->arrays[block * c->parts];
  if (part && rows != first->dims[lead - 1])
    return dv_layout_fail(
        l, "%.64s has %zu steps but %.64s, also named by %s, has %zu; all must have the same number",
        array->name, rows, first->name, dv_role_setting(role), first->dims[lead - 1]);
  c->widths[part] = width;
  c->arrays[block * c->parts + part] = array;
  static const char *const uses[] = {"observations (x)", "inputs (u)", "true state", "mask"};
  dv_layout_mark_used(l, array, uses[role]);
  return DVBF_OK;
}

/* x of one part with [height, width], or that and one channel or three behind the steps, is an image, the
 * same in all splits. */
static dvbf_status take_image(const dv_layout *l, const dv_frames *f, int lead, const char *prefix) {
  dvbf_data *data = l->data;
  const dv_columns *c = &f->columns[DV_ROLE_X];
  const dv_named_array *x = c->arrays[0];
  int inner = x->rank - lead;
  size_t channels = inner == 3 ? x->dims[x->rank - 1] : 1;
  bool image = c->parts == 1 && (inner == 2 || inner == 3) && (channels == 1 || channels == 3);
  size_t height = image ? x->dims[lead] : 0, width = image ? x->dims[lead + 1] : 0;
  if (!image) channels = 0;
  if (!data->train.x && !data->train.source)
    data->image_height = height, data->image_width = width, data->image_channels = channels;
  if (height == data->image_height && width == data->image_width && channels == data->image_channels)
    return DVBF_OK;
  return dv_layout_fail(l, "the images of %sx and train/x differ in shape; reshape one", prefix);
}

/* Names of columns: those that the file gives, or those of their arrays, or ROLE0, ROLE1, ... Only state must
 * have some. */
static dvbf_status read_column_names(const dv_layout *l, const dv_columns *c, const char *role, bool needed,
                                     char (**out)[32]) {
  bool given = needed || c->parts > 1;
  if (!c->width || *out) return DVBF_OK;
  char(*names)[32] = *out = dv_calloc(c->width, sizeof *names);
  if (!names) return dv_fail_memory(l->error, "reading data");
  for (size_t k = 0, at = 0; k < c->parts; at += c->widths[k++]) {
    const char *slash = strrchr(c->arrays[k]->name, '/'), *last = slash ? slash + 1 : c->arrays[k]->name;
    dv_found found =
        dv_array_strings(l->archive, c->arrays[k], DV_STRINGS_NAMES, c->widths[k], sizeof *names, names[at]);
    given |= found == DV_FOUND;
    if (found == DV_FOUND_UNREADABLE)
      return dv_layout_fail(l, "the attribute names of %.64s must be %zu strings, one for each column",
                            c->arrays[k]->name, c->widths[k]);
    for (size_t i = 0; found == DV_FOUND_NONE && i < c->widths[k]; i++)
      if (c->parts == 1)
        snprintf(names[i], sizeof *names, "%s%zu", role, i);
      else
        snprintf(names[at + i], sizeof *names, c->widths[k] > 1 ? "%.20s%u" : "%.20s", last, (unsigned)i);
  }
  if (!given) dv_free(names), *out = NULL;
  return DVBF_OK;
}

/* Units of columns; *out stays NULL if none is known. */
static dvbf_status read_column_units(const dv_layout *l, const dv_columns *c, char (**out)[16]) {
  bool any = false;
  if (!c->width || *out) return DVBF_OK;
  char(*units)[16] = *out = dv_calloc(c->width, sizeof *units);
  if (!units) return dv_fail_memory(l->error, "reading data");
  for (size_t k = 0, at = 0; k < c->parts; at += c->widths[k++])
    any |= dv_array_strings(l->archive, c->arrays[k], DV_STRINGS_UNITS, c->widths[k], sizeof *units,
                            units[at]) == DV_FOUND;
  if (!any) dv_free(units), *out = NULL;
  return DVBF_OK;
}

/* Bytes are pixels if x is an image, or has enough columns to be one; a few columns of bytes are numbers, as
 * of counters and switches. */
static void look_at_bytes(const dv_layout *l, dv_frames *f, bool image) {
  enum { PIXELS = 16 };
  bool bytes = false;
  const dv_columns *x = &f->columns[DV_ROLE_X];
  for (size_t k = 0; k < x->parts; k++) bytes |= x->arrays[k]->bytes;
  f->numbers = l->bits || !(image || x->width >= PIXELS);
  if (bytes && !f->numbers && !image && !l->data->train.count)
    dv_archive_note(l->archive,
                    "x holds bytes in %zu columns: they are treated as pixels and divided by 255; store them "
                    "as another type to keep their values",
                    x->width);
}

static dvbf_status look_at_mark(const dv_layout *l, bool *marked, float *mark) {
  const char *text = l->how->missing;
  *marked = strcmp(text, "refuse") != 0 && !allows_nan(l);
  if (!*marked || (dv_decimal(dv_cursor_of(text), false, mark) && !isnan(*mark))) return DVBF_OK;
  return dv_fail(l->error, DVBF_ARGUMENT, "missing = %.60s: must be refuse, nan or a number, such as -999",
                 text);
}

/* From here on facts are kept, and ranks read a share of x each, so they must have the same sequences. */
static dvbf_status share_source(const dv_layout *l, dvbf_sequences *s) {
  const uint64_t sizes[] = {s->count, s->steps, s->n_x, s->n_u, s->gaps, s->source != NULL};
  uint64_t hash = dv_hash_start;
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) hash = dv_hash_number(hash, sizes[i]);
  if (s->length) hash = dv_hash(hash, s->length, s->count * sizeof *s->length);
  if (s->source) s->source->team = l->team;
  dvbf_status status = dv_facts_begin(s, l->error);
  return status ? status : dv_ranks_agree(l->team, hash, "the data", l->error);
}

dvbf_status dv_layout_finish(const dv_layout *l, dv_frames *f, int lead, dvbf_sequences *s,
                             const char *prefix) {
  const dv_block *last = &f->block[f->blocks - 1];
  const dv_columns *x = &f->columns[DV_ROLE_X], *u = &f->columns[DV_ROLE_U],
                   *mask = &f->columns[DV_ROLE_MASK];
  dvbf_data *data = l->data;
  f->count = last->first + last->count * last->steps;
  for (dv_columns *c = f->columns; c < f->columns + DV_ROLE_LENGTH; c++)
    for (size_t k = 0; k < c->parts; k++) c->width += c->widths[k];
  if (mask->width > 1 && mask->width != x->width)
    return wrong_shape(l, mask->arrays[0], "one number for each step or each value of x; reshape it");
  dvbf_status status = take_image(l, f, lead, prefix);
  look_at_bytes(l, f, x->arrays[0]->rank >= lead + 2);
  if (!status) status = look_at_mark(l, &f->marked, &f->mark);
  if (!status) status = read_column_names(l, x, "x", false, &data->x_names);
  if (!status) status = read_column_names(l, u, "u", false, &data->u_names);
  if (!status) status = read_column_units(l, x, &data->x_units);
  if (!status) status = read_column_units(l, u, &data->u_units);
  if (!status) status = read_column_names(l, &f->columns[DV_ROLE_STATE], "state", true, &data->state_names);
  if (l->archive->lost) status = dv_layout_fail(l, "names and units cannot be read; %s", l->archive->lost);
  if (!status) status = dv_frames_load(s, f, l->archive, l->how, l->error);
  if (!status) dv_sequences_clear_padding(s);
  if (!status) status = share_source(l, s);
  return status;
}

dvbf_status dv_layout_follow(const dv_layout *l, dvbf_sequences *s, const size_t *lengths, size_t count) {
  size_t at = 0;
  bool equal = true;
  s->count = count;
  for (size_t i = 0; i < count; i++) {
    if (lengths[i] > s->steps) s->steps = lengths[i];
    equal = equal && lengths[i] == lengths[0];
  }
  if (equal || s->steps > UINT32_MAX) return DVBF_OK; /* what is too long is refused later */
  s->start = dv_calloc(count, sizeof *s->start);
  s->length = dv_calloc(count, sizeof *s->length);
  if (!s->start || !s->length) return dv_fail_memory(l->error, "reading data");
  for (size_t i = 0; i < count; at += lengths[i++]) {
    s->start[i] = at;
    s->length[i] = (uint32_t)lengths[i];
  }
  return DVBF_OK;
}

/* ---- Sequences stacked in one array ---- */

typedef struct plain {
  dv_group groups[DV_ROLES];
  size_t *lengths; /* [entries] as the file has them, NULL: none */
  size_t entries, total;
  int lead; /* dimensions that count frames: 1 [steps], 2 [sequences, steps] */
} plain;

static dvbf_status read_lengths(const dv_layout *l, plain *p) {
  const dv_named_array *array = p->groups[DV_ROLE_LENGTH].arrays[0], *x = p->groups[DV_ROLE_X].arrays[0];
  dvbf_status status = dv_layout_check(l, array);
  if (status) return status;
  if (array->rank != 1 || p->groups[DV_ROLE_LENGTH].count > 1 || array->elements > x->dims[0])
    return wrong_shape(l, array, "one integer for each sequence");
  double *raw = dv_calloc(array->elements, sizeof *raw);
  p->lengths = dv_calloc(array->elements, sizeof *p->lengths);
  p->entries = array->elements;
  dv_layout_mark_used(l, array, "lengths of sequences");
  status = raw && p->lengths
               ? dv_archive_read(l->archive, array, 0, array->elements, DV_DOUBLES(raw), l->error)
               : dv_fail_memory(l->error, "reading data");
  for (size_t i = 0; i < p->entries && !status; i++) {
    if (!(raw[i] >= 1 && raw[i] <= (double)DV_MAX_ELEMENTS && raw[i] == floor(raw[i])))
      status = dv_layout_fail(
          l, "%.64s is %g for sequence %zu (counted from 0); it must be a whole number of steps, 1 or more",
          array->name, raw[i], i);
    else
      p->lengths[i] = (size_t)raw[i];
    p->total += status ? 0 : p->lengths[i];
  }
  dv_free(raw);
  return status;
}

/* What u, state or mask imply about x: 1 or 2 leading dimensions, 0: nothing. u may have a step less. */
static int lead_beside(const dv_named_array *x, const dv_group *group, dv_role role) {
  const dv_named_array *beside = group->count ? group->arrays[0] : NULL;
  if (!beside || !beside->rank || (role == DV_ROLE_MASK && beside->rank == x->rank)) return 0;
  size_t less = role == DV_ROLE_U;
  bool first = beside->dims[0] == x->dims[0] || beside->dims[0] + less == x->dims[0];
  bool second = beside->rank > 1 && (beside->dims[1] == x->dims[1] || beside->dims[1] + less == x->dims[1]);
  if (beside->rank > 2) return role == DV_ROLE_MASK ? 0 : 2;
  if (beside->rank == 2 && x->rank > 2 && second) return 2;
  return first ? 1 : 0;
}

/* Whether x begins with [sequences, steps] or with [steps]. */
static dvbf_status decide_lead(const dv_layout *l, plain *p) {
  const dv_named_array *x = p->groups[DV_ROLE_X].arrays[0];
  p->lead = x->rank < 2 ? 1 : 0;
  if (p->lengths) {
    bool follow = p->total == x->dims[0] && p->entries != x->dims[0];
    if (!follow && (x->rank < 2 || p->entries != x->dims[0]))
      return dv_layout_fail(l,
                            "%.64s must be %zu integers, one for each sequence of %.64s, or sum to %zu, its "
                            "rows; it has %zu that sum to %zu",
                            p->groups[DV_ROLE_LENGTH].arrays[0]->name, x->dims[0], x->name, x->dims[0],
                            p->entries, p->total);
    p->lead = follow ? 1 : 2;
  }
  for (int role = DV_ROLE_U; !p->lead && role <= DV_ROLE_MASK; role++)
    p->lead = lead_beside(x, &p->groups[role], role);
  if (!p->lead) p->lead = x->rank == 2 ? 1 : 2;
  return DVBF_OK;
}

/* Asks about arrays whose columns seem to stand before their steps. */
static dvbf_status ask_to_transpose(const dv_layout *l, const plain *p) {
  enum { FEW_STEPS = 16, FEW_IN_SEQUENCES = 4, MANY_COLUMNS = 50 };
  const dv_named_array *x = p->groups[DV_ROLE_X].arrays[0];
  const dv_named_array *u = p->groups[DV_ROLE_U].count ? p->groups[DV_ROLE_U].arrays[0] : NULL;
  if (l->how->transpose != DV_TRANSPOSE_ASK || x->rank != p->lead + 1) return DVBF_OK;
  if (l->archive->format->floats) return DVBF_OK; /* a program knows its arrays */
  size_t steps = x->dims[x->rank - 2], columns = x->dims[x->rank - 1];
  bool few = steps <= (p->lead == 1 ? FEW_STEPS : FEW_IN_SEQUENCES) && columns >= MANY_COLUMNS &&
             columns >= 10 * steps;
  bool by_u = u && u->rank == x->rank && u->dims[u->rank - 1] == columns && u->dims[u->rank - 2] != steps;
  char shape[96];
  if (!by_u && (!few || u)) return DVBF_OK;
  return dv_layout_fail(l,
                        "%.64s has the shape %s, which means %zu steps of %zu columns; --transpose on makes "
                        "it %zu steps of %zu columns, --transpose off reads it unchanged",
                        x->name, dv_array_shape(x, shape, sizeof shape), steps, columns, columns, steps);
}

static dvbf_status check_x(const dv_layout *l, const dv_named_array *x) {
  dvbf_status status = dv_layout_check(l, x);
  if (status || (x->rank >= 1 && x->rank <= 5)) return status;
  return wrong_shape(l, x,
                     "[sequences, steps, columns], [sequences, steps, height, width] or, for one recording, "
                     "[steps, columns]; reshape it");
}

/* The frames and the sequences that they form. */
static dvbf_status lay_out(const dv_layout *l, plain *p, dv_frames *f, dvbf_sequences *s) {
  const dv_named_array *x = p->groups[DV_ROLE_X].arrays[0];
  for (int role = 0; role < DV_ROLE_LENGTH; role++) f->columns[role].parts = p->groups[role].count;
  dvbf_status status = dv_frames_allocate(f, 1, l->error);
  if (status) return status;
  f->block[0] = (dv_block){.count = p->lead == 2 ? x->dims[0] : 1, .steps = x->dims[p->lead - 1]};
  for (int role = 0; role < DV_ROLE_LENGTH && !status; role++)
    for (size_t k = 0; k < p->groups[role].count && !status; k++)
      status = dv_layout_take(l, f, 0, role, k, p->groups[role].arrays[k], p->lead);
  if (status) return status;
  if (p->lengths && p->lead == 1) return dv_layout_follow(l, s, p->lengths, p->entries);
  s->count = f->block[0].count;
  s->steps = f->block[0].steps;
  return DVBF_OK;
}

/* Lengths of sequences that are padded to the same number of steps. */
static dvbf_status take_lengths(const dv_layout *l, const plain *p, dvbf_sequences *s) {
  bool shorter = false;
  for (size_t i = 0; i < p->entries; i++) {
    if (p->lengths[i] > s->steps || p->lengths[i] > UINT32_MAX)
      return dv_layout_fail(
          l, "%.64s is %zu for sequence %zu (counted from 0); it must be in [1, %zu], the steps of x",
          p->groups[DV_ROLE_LENGTH].arrays[0]->name, p->lengths[i], i, s->steps);
    shorter |= p->lengths[i] < s->steps;
  }
  if (!shorter) return DVBF_OK;
  s->length = dv_calloc(s->count, sizeof *s->length);
  if (!s->length) return dv_fail_memory(l->error, "reading data");
  for (size_t i = 0; i < s->count; i++) s->length[i] = (uint32_t)p->lengths[i];
  return DVBF_OK;
}

/* Finds the other arrays of a split with x. A key that was asked for must be there. */
static dvbf_status find_beside(const dv_layout *l, int split, plain *p) {
  for (int role = DV_ROLE_U; role < DV_ROLES; role++) {
    dvbf_status status = find_role(l, split, role, &p->groups[role]);
    if (status) return status;
    if (!p->groups[role].count && *dv_role_text(l->how, role))
      return dv_layout_unclear(l, "", "there is no array %.60s%s, which %s names", dv_role_text(l->how, role),
                               split == WHOLE ? "" : " in every split", dv_role_setting(role));
  }
  return DVBF_OK;
}

/* The sequences of a split, or of the whole. Read values stay in *s on failure too, for the caller to free.
 */
static dvbf_status read_set(const dv_layout *l, int split, plain *p, dvbf_sequences *s) {
  dv_frames f = {0};
  char prefix[8] = "";
  const dv_named_array *x = p->groups[DV_ROLE_X].arrays[0];
  if (split != WHOLE) snprintf(prefix, sizeof prefix, "%s/", split_names[split][0]);
  dvbf_status status = find_beside(l, split, p);
  if (!status) status = check_x(l, x);
  if (!status && p->groups[DV_ROLE_MASK].count > 1)
    status = dv_fail(l->error, DVBF_ARGUMENT, "mask-key = %.60s: must be one name", l->how->mask_key);
  if (!status && p->groups[DV_ROLE_LENGTH].count) status = read_lengths(l, p);
  if (!status) status = decide_lead(l, p);
  if (!status) status = ask_to_transpose(l, p);
  if (!status && !p->lengths && p->lead == 1) status = dv_layout_ends(l, x, &p->lengths, &p->entries);
  if (!status) status = lay_out(l, p, &f, s);
  if (!status && p->lengths && p->lead == 2) status = take_lengths(l, p, s);
  if (!status) status = dv_layout_origins(l, s, x);
  if (!status) status = dv_layout_finish(l, &f, p->lead, s, prefix);
  dv_frames_free(&f);
  dv_free(p->lengths);
  return status;
}

/* Splits before values are read, so that a large file is read once, for each of its splits. */
dvbf_status dv_layout_split(const dv_layout *l, dvbf_sequences *all, const char *prefix) {
  dvbf_data *data = l->data;
  dvbf_sequences *splits[] = {&data->train, &data->valid, &data->test}, *parts[3];
  size_t n_parts = 0;
  const char *path = l->archive->path;
  dvbf_status status = dv_sequences_check_sizes(all, path, prefix, l->error), of_all = DVBF_OK;
  if (!status) status = dv_data_split(data, all, l->how, path, l->error);
  for (int i = 0; i < 3 && !status; i++)
    if (splits[i]->count) parts[n_parts++] = splits[i];
  for (size_t i = 0; i < n_parts && !status; i++) {
    status = dv_sequences_validate(parts[i], path, prefix, l->error);
    /* A message counts sequences and steps as the file does. */
    if (status) of_all = dv_sequences_validate(all, path, prefix, l->error);
    if (of_all) status = of_all;
  }
  if (!status)
    status = dv_data_without_outliers(data, all, parts, n_parts, prefix, l->how->outliers, l->error);
  if (status) {
    for (size_t i = 0; i < n_parts; i++) dv_windows_free(parts[i]);
    dvbf_sequences_free(all);
    return status;
  }
  DV_FREE(all->length, all->start, all->origin);
  return DVBF_OK;
}

dvbf_status dv_layout_complete(const dv_layout *l) {
  static const char *const prefixes[] = {"train/", "valid/", "test/"};
  dvbf_data *data = l->data;
  dvbf_sequences *splits[] = {&data->train, &data->valid, &data->test};
  dv_data_settings how = *l->how;
  int own = 0; /* splits from here on are stored as such */
  how.test_share = 0;
  if (!data->valid.count) {
    dv_layout train = *l;
    train.how = &how;
    dvbf_sequences all = data->train, test = data->test;
    data->train = data->test = (dvbf_sequences){0};
    dvbf_status status = dv_layout_split(&train, &all, "train/");
    data->test = test;
    if (status) return status;
    own = 2;
  }
  dvbf_status status = dv_data_validate(data, l->archive->path, l->error);
  for (int i = own; i < 3 && !status; i++)
    if (splits[i]->count)
      status = dv_data_without_outliers(data, splits[i], &splits[i], 1, prefixes[i], how.outliers, l->error);
  return status;
}

static dvbf_status read_whole(const dv_layout *l, plain *p) {
  dvbf_sequences all = {0};
  dvbf_status status = read_set(l, WHOLE, p, &all);
  if (!status) return dv_layout_split(l, &all, "");
  dvbf_sequences_free(&all);
  return status;
}

static dvbf_status read_splits(const dv_layout *l, plain splits[3]) {
  dvbf_sequences *sequences[] = {&l->data->train, &l->data->valid, &l->data->test};
  dvbf_status status = DVBF_OK;
  for (int i = 0; i < 3 && !status; i++)
    if (splits[i].groups[DV_ROLE_X].count) status = read_set(l, i, &splits[i], sequences[i]);
  return status ? status : dv_layout_complete(l);
}

/* ---- Tables ---- */

/* The columns of a role have names if the file has, and state always. */
static dvbf_status name_columns(const dv_layout *l, dv_role role, char (**names)[32], char (**units)[16]) {
  const dv_csv_columns *c = &l->archive->table->columns;
  size_t n = c->chosen[role];
  bool measured = false;
  for (size_t k = 0; units && k < n; k++) measured |= *c->column[c->choice[role][k]].unit != 0;
  bool named = n && (c->header || role == DV_ROLE_STATE);
  if (named) *names = dv_calloc(n, sizeof **names);
  if (measured) *units = dv_calloc(n, sizeof **units);
  if ((named && !*names) || (measured && !*units)) return dv_fail_memory(l->error, "reading data");
  for (size_t k = 0; k < n; k++) {
    const dv_csv_column *column = &c->column[c->choice[role][k]];
    if (c->header) dv_name_copy(dv_cursor_of(column->label), (*names)[k], sizeof **names);
    if (named && !c->header) snprintf((*names)[k], sizeof **names, "state%zu", k);
    if (measured) memcpy((*units)[k], column->unit, sizeof **units);
  }
  return DVBF_OK;
}

static dvbf_status take_rows(const dv_layout *l, int split, dvbf_sequences *s) {
  dv_csv_table *t = l->archive->table;
  dv_csv_rows *r = &t->splits[split];
  const size_t *widths = t->columns.chosen;
  float **arrays[] = {&s->x, &s->u, &s->state}, mark = 0;
  bool marked = false;
  if (!r->count) return DVBF_OK;
  s->n_x = widths[DV_ROLE_X];
  s->n_u = widths[DV_ROLE_U];
  s->n_s = widths[DV_ROLE_STATE];
  dvbf_status status = look_at_mark(l, &marked, &mark);
  if (!status) status = dv_layout_follow(l, s, r->lengths, r->sequences);
  for (int role = 0; role <= DV_ROLE_STATE && !status; role++)
    if (widths[role] && !(*arrays[role] = dv_csv_table_values(t, split, role)))
      status = dv_fail_memory(l->error, "reading data");
  if (status) return status;
  s->gaps = marked || t->gaps || allows_nan(l);
  for (size_t k = 0; marked && k < r->count * s->n_x; k++)
    if (s->x[k] == mark) s->x[k] = NAN;
  s->origin = r->origins;
  r->origins = NULL;
  return share_source(l, s);
}

static dvbf_status read_table(const dv_layout *l) {
  dvbf_data *data = l->data;
  const dv_csv_columns *c = &l->archive->table->columns;
  dvbf_sequences all = {0}, *splits[] = {&data->train, &data->valid, &data->test, &all};
  data->sample_time = l->archive->table->sample_time;
  data->dates = c->dates;
  dvbf_status status = name_columns(l, DV_ROLE_X, &data->x_names, &data->x_units);
  if (!status) status = name_columns(l, DV_ROLE_U, &data->u_names, &data->u_units);
  if (!status) status = name_columns(l, DV_ROLE_STATE, &data->state_names, NULL);
  for (int i = TRAIN; i <= WHOLE && !status; i++) status = take_rows(l, i, splits[i]);
  if (!status && c->split == DV_CSV_NONE) return dv_layout_split(l, &all, "");
  if (!status && !data->train.count)
    status = dv_layout_fail(l, "no row has the split train, though others have one");
  if (!status) return dv_layout_complete(l);
  dvbf_sequences_free(&all);
  return status;
}

/* ---- Files and arrays ---- */

/* The only array of numbers is x. */
static const dv_named_array *only_array(const dv_archive *a) {
  const dv_named_array *only = NULL;
  for (size_t i = 0; i < a->count; i++) {
    if (a->arrays[i].trouble) continue;
    if (only) return NULL;
    only = &a->arrays[i];
  }
  return only;
}

static dvbf_status nothing_found(const dv_layout *l) {
  if (*l->how->outputs)
    return dv_layout_unclear(
        l, "", "there is no array %.60s, which outputs names, at the root or in train, valid and test",
        l->how->outputs);
  return dv_layout_unclear(
      l, "",
      "x is missing at the root and in train, valid and test; --outputs names the array of the observations");
}

/* Bytes are pixels, unless none of them, in any split, is above 1. One rank looks for all. */
static bool all_bits(const dv_layout *l, const plain sets[4]) {
  bool bits = dv_ranks_rank(l->team) == 0;
  for (int i = 0; i < 4; i++)
    for (size_t k = 0; bits && k < sets[i].groups[DV_ROLE_X].count; k++)
      bits = dv_array_is_bits(l->archive, sets[i].groups[DV_ROLE_X].arrays[k]);
  dv_ranks_broadcast(l->team, &bits, sizeof bits);
  return bits;
}

static dvbf_status read_arrays(dv_layout *l) {
  dvbf_status status = dv_layout_time(l);
  if (status) return status;
  plain *sets = dv_calloc(4, sizeof *sets); /* train, valid, test and the whole */
  if (!sets) return dv_fail_memory(l->error, "reading data");
  bool splits = false, episodes = false;
  for (int i = 0; i < 4 && !status; i++) {
    status = find_role(l, i, DV_ROLE_X, &sets[i].groups[DV_ROLE_X]);
    splits |= i < 3 && sets[i].groups[DV_ROLE_X].count;
  }
  dv_group *whole = &sets[WHOLE].groups[DV_ROLE_X];
  if (!status && splits && !sets[TRAIN].groups[DV_ROLE_X].count)
    status = dv_layout_unclear(l, "", "x of train is missing, though another split has x");
  else if (!status && splits)
    l->bits = all_bits(l, sets), status = read_splits(l, sets);
  if (!status && !splits && !whole->count) status = dv_layout_episodes(l, &episodes);
  if (!status && !splits && !episodes && !whole->count && !*l->how->outputs &&
      (whole->arrays[0] = only_array(l->archive)))
    whole->count = 1;
  if (!status && !splits && !episodes) {
    l->bits = all_bits(l, sets);
    status = whole->count ? read_whole(l, &sets[WHOLE]) : nothing_found(l);
  }
  dv_free(sets);
  return status;
}

static dvbf_status check_settings(const dv_layout *l) {
  for (int i = DV_ROLE_STATE + 1; i < DV_ROLES && l->archive->table; i++)
    if (*dv_role_text(l->how, i))
      return dv_fail(l->error, DVBF_ARGUMENT,
                     "%s = %.60s: %.200s is a CSV file, which has no arrays; leave fields empty where values "
                     "are missing, and identify sequences by a column named sequence",
                     dv_role_setting(i), dv_role_text(l->how, i), l->archive->path);
  return DVBF_OK;
}

/* From files, folders or patterns or, if `paths` is NULL, from arrays. */
static dvbf_status read_from(dvbf_data *data, const char *const *paths, const dvbf_array *arrays,
                             size_t count, const dv_data_settings *how, dv_ranks *team, dvbf_error *error) {
  dv_layout l = {.how = how, .data = data, .team = team, .error = error};
  dvbf_status status = paths ? dv_archive_open_all(&l.archive, paths, count, how, error)
                             : dv_archive_of(&l.archive, arrays, count, error);
  if (!status) status = check_settings(&l);
  if (!status && how->transpose == DV_TRANSPOSE_ON && !l.archive->files) dv_archive_transpose(l.archive);
  if (!status && !(l.taken = dv_calloc(l.archive->count + 1, sizeof *l.taken)))
    status = dv_fail_memory(error, "reading data");
  if (!status) status = l.archive->table ? read_table(&l) : read_arrays(&l);
  if (!status) status = dv_layout_report_usage(&l);
  dv_free((void *)l.taken);
  dv_archive_release(l.archive);
  return status;
}

/* Ends the ranks' common reading. Statistics of splits without outliers are measured anew while ranks still
 * share that. */
static dvbf_status part_ways(dvbf_data *data, dvbf_error *error) {
  const dvbf_sequences *const splits[] = {&data->train, &data->valid, &data->test};
  dvbf_status status = DVBF_OK;
  for (int i = 0; i < 3 && !status; i++) {
    dv_statistics x;
    if (!splits[i]->source || !splits[i]->source->team) continue;
    status = dv_statistics_of_x(&x, splits[i], error);
    if (!status) dv_statistics_free(&x);
  }
  for (int i = 0; i < 3; i++)
    if (splits[i]->source) splits[i]->source->team = NULL;
  return status;
}

static dvbf_status make_data(dvbf_data **out, const char *const *paths, const dvbf_array *arrays,
                             size_t count, const dvbf_settings *how, dvbf_error *error) {
  dvbf_settings *defaults = NULL;
  dvbf_data *data = dv_calloc(1, sizeof *data);
  dvbf_status status = data ? DVBF_OK : dv_fail_memory(error, "reading data");
  if (!status && !how) status = dvbf_settings_new(&defaults, "data", error);
  const dv_data_settings *values = status ? NULL : dv_settings_data(how ? how : defaults, error);
  if (!status && !values) status = DVBF_ARGUMENT;
  if (!status)
    status = read_from(data, paths, arrays, count, values, how ? dv_settings_ranks(how) : NULL, error);
  if (!status) status = part_ways(data, error);
  dvbf_settings_free(defaults);
  if (status)
    dvbf_data_free(data);
  else
    *out = data;
  return status;
}

dvbf_status dvbf_data_read(dvbf_data **out, const char *path, const dvbf_settings *how, dvbf_error *error) {
  return make_data(out, &path, NULL, 1, how, error);
}

dvbf_status dvbf_data_read_files(dvbf_data **out, const char *const *paths, size_t count,
                                 const dvbf_settings *how, dvbf_error *error) {
  if (!count) return dv_fail(error, DVBF_ARGUMENT, "data: no file is given; name at least one");
  return make_data(out, paths, NULL, count, how, error);
}

dvbf_status dvbf_data_from(dvbf_data **out, const dvbf_array *arrays, size_t count, const dvbf_settings *how,
                           dvbf_error *error) {
  return make_data(out, NULL, arrays, count, how, error);
}
