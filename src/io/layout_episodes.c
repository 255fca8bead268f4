/* Sequences as separate arrays in numbered groups (dv_layout_episodes): robomimic's data/demo_7/{obs/KEY,
 * actions} and Minari's episode_7/{observations, actions}. */
#include "io/layout.h"

#include "base/error.h"
#include "base/memory.h"

#include <stdio.h>
#include <string.h>

/* One group: its path up to and with the number, as data/demo_7. */
typedef struct episode {
  const char *name; /* not ended */
  size_t length;
  size_t array; /* where its arrays begin in the archive's */
} episode;

typedef struct episodes {
  episode *list; /* [count] */
  size_t count;
  bool arrays; /* each is an array, not a group of them */
} episodes;

/* ---- Finding episodes ---- */

/* Whether they differ in their number alone. */
static bool same_family(const episode *a, const episode *b) {
  size_t n = dv_family_length(a->name, a->length);
  return n == dv_family_length(b->name, b->length) && !memcmp(a->name, b->name, n);
}

/* numpy.savez names arrays that have no name arr_0, arr_1, ...: several with equally many columns are a list
 * of sequences. */
static bool is_list(const dv_archive *a) {
  for (size_t i = 0; i < a->count; i++) {
    const dv_named_array *array = &a->arrays[i], *first = &a->arrays[0];
    const char *number = array->name + 4;
    if (strncmp(array->name, "arr_", 4) || !*number || strspn(number, "0123456789") != strlen(number))
      return false;
    if (array->trouble || array->rank < 1 || array->rank > 3 || array->rank != first->rank) return false;
    for (int k = 1; k < array->rank; k++)
      if (array->dims[k] != first->dims[k]) return false;
  }
  return a->count > 1;
}

/* All episodes of the family of the first; the arrays are in the order of their names. */
static dvbf_status find_episodes(const dv_layout *l, episodes *out) {
  const dv_archive *a = l->archive;
  out->count = 0;
  out->list = dv_calloc(a->count, sizeof *out->list);
  if (!out->list) return dv_fail_memory(l->error, "reading data");
  out->arrays = !*l->how->outputs && is_list(a);
  for (size_t i = 0; out->arrays && i < a->count; i++)
    out->list[out->count++] =
        (episode){.name = a->arrays[i].name, .length = strlen(a->arrays[i].name), .array = i};
  for (size_t i = 0; !out->arrays && i < a->count; i++) {
    const char *name = a->arrays[i].name;
    episode e = {.name = name, .length = dv_episode_length(name), .array = i};
    if (!e.length) continue;
    const episode *last = out->count ? &out->list[out->count - 1] : NULL;
    if (last && !same_family(last, &e)) continue;
    if (last && last->length == e.length && !memcmp(last->name, e.name, e.length)) continue;
    out->list[out->count++] = e;
  }
  return DVBF_OK;
}

/* The array below an episode or, if `rest` is empty, the episode's array itself. */
static const dv_named_array *find_below(const dv_layout *l, const episode *e, const char *rest) {
  char name[2 * DV_ARRAY_NAME];
  snprintf(name, sizeof name, "%.*s%s%s", (int)e->length, e->name, *rest ? "/" : "", rest);
  return dv_archive_find(l->archive, name);
}

/* ---- Roles (by the first episode) ---- */

/* Names of the arrays of a role, or of groups of them. */
static const char *const usual[][4] = {
    {"obs", "observations", "x"}, {"actions", "action", "u"}, {"state"}, {"mask"}};

/* The rest of an array's path below the episode's; NULL if it is not the episode's. */
static const char *rest_of(const dv_named_array *array, const episode *e) {
  bool below = !strncmp(array->name, e->name, e->length) && array->name[e->length] == '/';
  return below ? array->name + e->length + 1 : NULL;
}

static bool is_usual(const char *rest, dv_role role) {
  for (int i = 0; i < 4 && usual[role][i]; i++) {
    size_t n = strlen(usual[role][i]);
    if (!strncmp(rest, usual[role][i], n) && (!rest[n] || rest[n] == '/')) return true;
  }
  return false;
}

static bool add_rest(dv_keys *r, const char *rest) {
  if (r->count == DV_MOST_KEYS || strlen(rest) >= DV_TEXT) return false;
  strcpy(r->names[r->count++], rest);
  return true;
}

/* The usual ones; of several for x, all numbers with a row of columns per step. */
static dvbf_status usual_rests(const dv_layout *l, const episode *e, dv_role role, dv_keys *out) {
  for (int narrow = 0; narrow < 2; narrow++) {
    out->count = 0;
    for (size_t i = 0; i < l->archive->count; i++) {
      const dv_named_array *array = &l->archive->arrays[i];
      const char *rest = rest_of(array, e);
      if (!rest || !is_usual(rest, role) || (narrow && (!array->real || array->rank > 2 || array->trouble)))
        continue;
      if (!add_rest(out, rest)) return dv_layout_unclear(l, "", "an episode has more than 64 arrays for x");
    }
    if (role != DV_ROLE_X || out->count <= 1) break;
  }
  return DVBF_OK;
}

/* Those that a setting names, as they are or below obs. */
static dvbf_status named_rests(const dv_layout *l, const episode *e, dv_role role, const dv_keys *keys,
                               dv_keys *out) {
  static const char *const folders[] = {"", "obs/", "observations/"};
  out->count = 0;
  for (size_t k = 0; k < keys->count; k++) {
    char rest[DV_TEXT + 16];
    size_t before = out->count;
    for (int i = 0; i < 3 && out->count == before; i++) {
      snprintf(rest, sizeof rest, "%s%s", folders[i], keys->names[k]);
      if (find_below(l, e, rest)) add_rest(out, rest);
    }
    if (out->count == before) {
      char prefix[DV_ARRAY_NAME + 1];
      snprintf(prefix, sizeof prefix, "%.*s/", (int)e->length, e->name);
      return dv_layout_unclear(l, prefix, "the first episode has no array %.60s, which %s names",
                               keys->names[k], dv_role_setting(role));
    }
  }
  return DVBF_OK;
}

static dvbf_status find_rests(const dv_layout *l, const episode *e, dv_role role, dv_keys *out) {
  dv_keys keys;
  dvbf_status status = dv_layout_keys(l, role, &keys);
  if (status) return status;
  if (keys.count) return named_rests(l, e, role, &keys, out);
  return usual_rests(l, e, role, out);
}

/* ---- Reading ---- */

/* Notes the arrays of one episode, which begin with [steps]. */
static dvbf_status take_episode(const dv_layout *l, dv_frames *f, size_t block, const episode *e,
                                const dv_keys *roles /* [4] */) {
  for (int role = 0; role < DV_ROLE_LENGTH; role++)
    for (size_t k = 0; k < roles[role].count; k++) {
      const dv_named_array *array = find_below(l, e, roles[role].names[k]);
      if (!array)
        return dv_layout_fail(l, "%.*s has no %.64s, as the first episode has; add or leave it out",
                              (int)e->length, e->name, roles[role].names[k]);
      dvbf_status status = dv_layout_check(l, array);
      if (status) return status;
      if (role == 0 && k == 0) {
        size_t first = block ? f->block[block - 1].first + f->block[block - 1].steps : 0;
        if (!array->rank)
          return dv_layout_fail(l, "%.64s is a single number; it must be [steps, columns]", array->name);
        f->block[block] = (dv_block){.first = first, .count = 1, .steps = array->dims[0]};
      }
      status = dv_layout_take(l, f, block, role, k, array, 1);
      if (status) return status;
    }
  return DVBF_OK;
}

/* Each sequence has the number and the name of its episode, as demo_7. */
static dvbf_status name_origins(const dv_layout *l, dvbf_sequences *s, const episodes *all,
                                const bool *chosen) {
  s->origin = dv_calloc(s->count, sizeof *s->origin);
  if (!s->origin) return dv_fail_memory(l->error, "reading data");
  for (size_t i = 0, k = 0; i < all->count; i++) {
    const episode *e = &all->list[i];
    size_t folder = e->length;
    if (!chosen[i]) continue;
    while (folder && e->name[folder - 1] != '/') folder--;
    s->origin[k].sequence = i;
    snprintf(s->origin[k++].name, sizeof s->origin->name, "%.*s", (int)(e->length - folder),
             e->name + folder);
  }
  return DVBF_OK;
}

static dvbf_status read_episodes(const dv_layout *l, const episodes *all, const bool *chosen /* [count] */,
                                 const dv_keys *roles, dvbf_sequences *s, const char *prefix) {
  dv_frames f = {0};
  size_t count = 0, block = 0;
  for (size_t i = 0; i < all->count; i++) count += chosen[i];
  if (!count) return DVBF_OK;
  size_t *lengths = dv_calloc(count, sizeof *lengths);
  for (int role = 0; role < DV_ROLE_LENGTH; role++) f.columns[role].parts = roles[role].count;
  dvbf_status status =
      lengths ? dv_frames_allocate(&f, count, l->error) : dv_fail_memory(l->error, "reading data");
  for (size_t i = 0; i < all->count && !status; i++) {
    if (!chosen[i]) continue;
    status = take_episode(l, &f, block, &all->list[i], roles);
    if (!status) lengths[block] = f.block[block].steps;
    block++;
  }
  if (!status) status = dv_layout_follow(l, s, lengths, count);
  if (!status) status = name_origins(l, s, all, chosen);
  if (!status) status = dv_layout_finish(l, &f, 1, s, prefix);
  dv_frames_free(&f);
  dv_free(lengths);
  return status;
}

/* ---- Splits by mask/train and mask/valid ---- */

static dvbf_status mark(const dv_layout *l, const dv_named_array *list, const episodes *all, const char *rest,
                        bool *chosen) {
  dv_archive *a = l->archive;
  char(*names)[32] = list->rank == 1 ? dv_calloc(list->elements, sizeof *names) : NULL;
  if (!names ||
      dv_array_strings(a, list, DV_STRINGS_VALUES, list->elements, sizeof *names, *names) != DV_FOUND) {
    dv_free(names);
    return dv_fail_file(l->error, a->path, "%.64s cannot be read as a list of names of episodes", list->name);
  }
  dvbf_status status = DVBF_OK;
  const char *first = all->list[0].name;
  size_t folder = dv_family_length(first, all->list[0].length);
  while (folder && first[folder - 1] != '/') folder--;
  for (size_t k = 0; k < list->elements && !status; k++) {
    char path[2 * DV_ARRAY_NAME + 32];
    snprintf(path, sizeof path, "%.*s%s/%s", (int)folder, first, names[k], rest);
    const dv_named_array *array = dv_archive_find(a, path);
    if (array)
      chosen[dv_part_at(&all->list[0].array, sizeof *all->list, all->count, (size_t)(array - a->arrays))] =
          true;
    else
      status = dv_fail_file(l->error, a->path, "%.64s names %s, which does not exist; correct the list",
                            list->name, names[k]);
  }
  dv_free(names);
  return status;
}

static dvbf_status read_masked(const dv_layout *l, const episodes *all, const dv_keys *roles, bool *chosen) {
  static const char *const lists[] = {"mask/train", "mask/valid", "mask/test"};
  static const char *const prefixes[] = {"train/", "valid/", "test/"};
  dvbf_sequences *splits[] = {&l->data->train, &l->data->valid, &l->data->test};
  for (int i = 0; i < 3; i++) {
    const dv_named_array *list = dv_archive_find(l->archive, lists[i]);
    if (!list || !list->text) continue;
    memset(chosen, 0, all->count);
    dvbf_status status = mark(l, list, all, roles[0].names[0], chosen);
    if (!status) status = read_episodes(l, all, chosen, roles, splits[i], prefixes[i]);
    if (status) return status;
  }
  return dv_layout_complete(l);
}

/* Bytes are pixels, unless none of them, in any episode, is above 1. */
static bool episodes_are_bits(const dv_layout *l, const episodes *all, const dv_keys *x) {
  for (size_t i = 0; i < all->count; i++)
    for (size_t k = 0; k < x->count; k++) {
      const dv_named_array *array = find_below(l, &all->list[i], x->names[k]);
      if (array && !dv_array_is_bits(l->archive, array)) return false;
    }
  return true;
}

static dvbf_status read_all_episodes(dv_layout *l, const episodes *all, const dv_keys *roles) {
  l->bits = episodes_are_bits(l, all, &roles[DV_ROLE_X]);
  bool *chosen = dv_calloc(all->count, sizeof *chosen);
  if (!chosen) return dv_fail_memory(l->error, "reading data");
  const dv_named_array *train = dv_archive_find(l->archive, "mask/train");
  dvbf_status status;
  if (train && train->text) {
    status = read_masked(l, all, roles, chosen);
  } else {
    dvbf_sequences s = {0};
    memset(chosen, 1, all->count);
    status = read_episodes(l, all, chosen, roles, &s, "");
    if (status)
      dvbf_sequences_free(&s);
    else
      status = dv_layout_split(l, &s, "");
  }
  dv_free(chosen);
  return status;
}

dvbf_status dv_layout_episodes(dv_layout *l, bool *found) {
  episodes all = {0};
  dv_keys *roles = dv_calloc(DV_ROLE_LENGTH, sizeof *roles);
  dvbf_status status = roles ? find_episodes(l, &all) : dv_fail_memory(l->error, "reading data");
  if (!status && all.arrays) {
    roles[0].count = 1; /* the array itself */
    dv_archive_note(l->archive, "arr_0, arr_1, ... are treated as sequences; if they are x and u instead, "
                                "give --outputs arr_0 --inputs arr_1");
  }
  bool groups = !status && all.count && !all.arrays;
  for (int role = 0; groups && role < DV_ROLE_LENGTH && !status && (!role || roles[0].count); role++)
    status = find_rests(l, &all.list[0], role, &roles[role]);
  *found = !status && all.count && roles[0].count;
  if (*found)
    status = roles[DV_ROLE_MASK].count > 1 ? dv_layout_fail(l, "an episode has more than one mask")
                                           : read_all_episodes(l, &all, roles);
  dv_free(all.list);
  dv_free(roles);
  return status;
}
