/* Looking at all rows of sequences, in memory or in a file: piece by piece, by one process or by ranks. */
#include "base/memory.h"
#include "base/status.h"
#include "data/dataset.h"

enum { PIECE = 1 << 16 }; /* numbers looked at between two reads of a source */

uint64_t dv_large = (uint64_t)1 << 31;
uint64_t dv_chunk = (uint64_t)1 << 24;

size_t dv_sequences_thinned(const dvbf_sequences *s) {
  double numbers = (double)dv_sequences_frames(s) * (double)s->n_x;
  return numbers > (double)dv_large ? (size_t)(64 * numbers / (double)dv_large) : 1;
}

/* Whether piece number `piece` is one of those looked at, of which there is one in each run of `thinned`. Its
 * place there is drawn by its number, so that no rhythm of the data can hide from it. */
static bool is_chosen(uint64_t piece, size_t thinned) {
  uint64_t hash = (piece / thinned + 1) * 0x9e3779b97f4a7c15;
  hash = (hash ^ hash >> 32) * 0xd6e8feb86659fd93;
  return thinned < 2 || piece % thinned == (hash ^ hash >> 32) % thinned;
}

/* ---- Pieces ---- */

/* The rows of a piece: steps first .. first + count - 1 of a sequence, `before` rows after the first of all.
 */
typedef struct piece {
  size_t sequence, first, count;
  uint64_t before;
} piece;

typedef dvbf_status piece_fn(void *user, const piece *p, dvbf_error *error);

/* Calls `each` with the pieces of at most so many rows that are looked at. */
static dvbf_status each_piece(const dvbf_sequences *s, size_t most, size_t thinned, piece_fn *each,
                              void *user, dvbf_error *error) {
  uint64_t number = 0;
  piece p = {0};
  dvbf_status status = DVBF_OK;
  for (p.sequence = 0; p.sequence < s->count && !status; p.sequence++) {
    size_t length = dvbf_sequence_length(s, p.sequence);
    for (p.first = 0; p.first < length && !status; p.first += most, p.before += p.count) {
      p.count = length - p.first < most ? length - p.first : most;
      if (is_chosen(number++, thinned)) status = each(user, &p, error);
    }
  }
  return status;
}

typedef struct looking {
  const dvbf_sequences *s;
  const float *values; /* [frames][width]; NULL: x */
  size_t width;
  float *buffer; /* of x in a file */
  dv_row_fn *each;
  void *user;
} looking;

static dvbf_status look(void *user, const piece *p, dvbf_error *error) {
  const looking *l = user;
  const float *rows = l->values ? l->values + (dvbf_sequence_start(l->s, p->sequence) + p->first) * l->width
                                : dv_sequence_x(l->s, p->sequence, p->first, p->count, l->buffer);
  dvbf_status status = DVBF_OK;
  for (size_t k = 0; k < p->count && !status; k++)
    status = l->each(l->user, p->sequence, p->first + k, rows + k * l->width, error);
  return status;
}

/* Calls `each` with pieces, and `l` is ready to look at them. */
static dvbf_status walk(looking *l, piece_fn *each, void *user, dvbf_error *error) {
  size_t thinned = l->values ? 1 : dv_sequences_thinned(l->s), most = l->width < PIECE ? PIECE / l->width : 1;
  dvbf_status status = l->values ? DVBF_OK : dv_sequence_buffer(&l->buffer, l->s, most, error);
  if (!status) status = each_piece(l->s, most, thinned, each, user, error);
  dv_free(l->buffer);
  return status;
}

dvbf_status dv_each_row(const dvbf_sequences *s, const float *values, size_t width, dv_row_fn *each,
                        void *user, dvbf_error *error) {
  looking l = {s, values, width, NULL, each, user};
  return walk(&l, look, &l, error);
}

/* ---- Chunks ---- */

uint64_t dv_rows_in_chunk(const dvbf_sequences *s, size_t width, bool of_x) {
  enum { CHUNKS = 64 };
  if (of_x && dv_sequences_thinned(s) > 1) return (dv_sequences_frames(s) + CHUNKS - 1) / CHUNKS;
  return width < dv_chunk ? dv_chunk / width : 1;
}

/* Chunk c is that of rank c % size. After each round of chunks the ranks tell each other what they found. */
typedef struct surveying {
  looking looking;
  const dv_survey *survey;
  dv_team *team;
  uint64_t rows;  /* of a chunk */
  uint64_t chunk; /* that is open */
  size_t *first;  /* [size + 1] */
  void *other;    /* room for what another rank found */
} surveying;

static bool is_own(const surveying *f) {
  return (int)(f->chunk % (uint64_t)dv_team_size(f->team)) == dv_team_rank(f->team);
}

/* Joins what the ranks found in the chunks from .. from + count - 1, rank after rank. */
static void join_round(const surveying *f, uint64_t from, int count) {
  const dv_survey *survey = f->survey;
  int size = dv_team_size(f->team);
  for (int rank = 0; rank < count; rank++) {
    void *part = rank == dv_team_rank(f->team) ? survey->part : f->other;
    for (int r = 0; r <= size; r++) f->first[r] = r > rank;
    dv_team_gather_parts(f->team, part, survey->bytes, f->first);
    survey->join(survey->user, part, from + (uint64_t)rank == 0);
  }
}

/* The open chunk is at its end, and so is its round where it is the last of it. */
static void close_chunk(surveying *f, bool last) {
  uint64_t size = (uint64_t)dv_team_size(f->team), turn = f->chunk % size;
  if (is_own(f) && f->survey->end) f->survey->end(f->survey->user);
  if (turn + 1 == size || last) join_round(f, f->chunk - turn, (int)turn + 1);
  f->chunk++;
  if (is_own(f) && !last) f->survey->begin(f->survey->user);
}

static dvbf_status survey_piece(void *user, const piece *p, dvbf_error *error) {
  surveying *f = user;
  while (p->before / f->rows > f->chunk) close_chunk(f, false);
  return is_own(f) ? look(&f->looking, p, error) : DVBF_OK;
}

dvbf_status dv_survey_rows(const dvbf_sequences *s, const float *values, size_t width,
                           const dv_survey *survey, dvbf_error *error) {
  surveying f = {.looking = {s, values, width, NULL, survey->row, survey->user}, .survey = survey};
  f.rows = dv_rows_in_chunk(s, width, !values);
  if (!values && s->source && dv_sequences_frames(s) > f.rows) f.team = s->source->team;
  f.first = dv_calloc((size_t)dv_team_size(f.team) + 1, sizeof *f.first);
  f.other = f.team ? dv_calloc(1, survey->bytes) : NULL;
  bool made = f.first && (f.other || !f.team);
  dvbf_status status = made ? DVBF_OK : dv_fail_memory(error, "looking at the data");
  if (!status && is_own(&f)) survey->begin(survey->user);
  if (!status) status = walk(&f.looking, survey_piece, &f, error);
  if (!status) close_chunk(&f, true);
  DV_FREE(f.first, f.other);
  return status;
}
