/* The Kalman filter of a linear system as statements (dv_kalman_part). Values of x are processed one by one,
 * so no matrix is inverted: the noise of x, e = L n, n ~ N(0, I), extends the state to a = (z, n), so each
 * value is a row h of (H, L):
 *
 *   v = P h    s = h v    a += v (x - h a - ...) / s    P -= v v' / s
 *
 * The next z is (A, S) a + B u + b with new noise, where S n is the noise of z correlated with that of x. */
#include "export/part.h"

#include "base/error.h"
#include "base/memory.h"
#include "ops/emit.h"

#include <string.h>

typedef struct builder {
  dvbf_code *code;
  const dv_state_space *s;
  int n_z, n_x, n_u, n;                   /* n = n_z + n_x */
  bool feedthrough;                       /* u is that of the same row as x */
  dvbf_place rows, through, gain, turned; /* (H, L) [n_x][n], D [n_x][n_u], (A, S) [n_z][n] and transposed */
  dvbf_place noise, b, shift_z, shift_x, mean, cov, identity;
  dvbf_place range;        /* [2][n_z]; buffer < 0: none */
  dvbf_value a, p, v, one; /* of an observation: (z, n), its covariance, P h, and some numbers */
  dvbf_value u;
} builder;

static dvbf_place constant(builder *k, const double *values, int n) {
  float *single = dv_calloc((size_t)n + 1, sizeof *single);
  for (int i = 0; single && i < n; i++) single[i] = (float)values[i];
  dvbf_place place = {-1, 0, 0, 1};
  if (single)
    place = dv_code_constant(k->code, single, n > 0 ? n : 1, "system");
  else
    dvbf_code_refuse(k->code, "out of memory while exporting a linear model");
  dv_free(single);
  return place;
}

/* The place of row r of a constant table of that width, for all rows of a statement. */
static dvbf_expr row_of(builder *k, dvbf_place table, int r, int width) {
  return dvbf_code_read(k->code, (dvbf_place){table.buffer, (size_t)r * (size_t)width, 0, 1});
}

static bool make_constants(builder *k, const dv_noise_factors *f) {
  int n_z = k->n_z, n_x = k->n_x, n = k->n;
  double *t = dv_calloc((size_t)n * (size_t)n * 5, sizeof *t);
  if (!t) return false;
  double *rows = t, *gain = rows + n * n, *turned = gain + n * n, *noise = turned + n * n,
         *identity = noise + n * n;
  for (int i = 0; i < n_x; i++) {
    memcpy(rows + i * n, k->s->h + i * n_z, (size_t)n_z * sizeof *rows);
    memcpy(rows + i * n + n_z, f->x + i * n_x, (size_t)n_x * sizeof *rows);
  }
  for (int i = 0; i < n_z; i++) {
    memcpy(gain + i * n, k->s->a + i * n_z, (size_t)n_z * sizeof *gain);
    memcpy(gain + i * n + n_z, f->shared + i * n_x, (size_t)n_x * sizeof *gain);
    for (int j = 0; j < n; j++) turned[j * n_z + i] = gain[i * n + j];
    for (int j = 0; j < n_z; j++)
      for (int c = 0; c < n_z; c++) noise[i * n_z + j] += f->z[i * n_z + c] * f->z[j * n_z + c];
  }
  for (int i = n_z; i < n; i++) identity[i * n + i] = 1;
  k->rows = constant(k, rows, n_x * n);
  k->gain = constant(k, gain, n_z * n);
  k->turned = constant(k, turned, n * n_z);
  k->noise = constant(k, noise, n_z * n_z);
  k->identity = constant(k, identity, n * n);
  if (k->feedthrough) k->through = constant(k, k->s->d, n_x * k->n_u);
  k->b = constant(k, k->s->b, n_z * k->n_u);
  k->shift_z = constant(k, k->s->shift_z, n_z);
  k->shift_x = constant(k, k->s->shift_x, n_x);
  k->mean = constant(k, k->s->mean, n_z);
  k->cov = constant(k, k->s->cov, n_z * n_z);
  dv_free(t);
  return true;
}

static dvbf_value part_of(dvbf_value v, size_t offset, int n) {
  v.offset += offset;
  v.cols = n;
  return v;
}

static dvbf_value number_at(const builder *k, int i) {
  return part_of(k->one, (size_t)i, 1);
}

/* D u + shift of column i into one[0]; its mean h a is added by the caller. */
static void put_offset(builder *k, int i) {
  dvbf_code *c = k->code;
  dvbf_value to = number_at(k, 0);
  dvbf_expr shift = dvbf_code_read(c, (dvbf_place){k->shift_x.buffer, (size_t)i, 0, 0});
  dv_emit(c, to, dv_number(c, 0));
  if (k->feedthrough)
    dvbf_code_sum(c, dvbf_place_of(to), 1, k->n_u,
                  dv_times(c, row_of(k, k->through, i, k->n_u), dv_read(c, k->u)));
  dv_emit(c, to, dv_plus(c, dv_read(c, to), shift));
}

/* v = P h of row i, s = h v into one[1], h a into one[2]. */
static void put_row(builder *k, int i) {
  dvbf_code *c = k->code;
  dvbf_expr h = row_of(k, k->rows, i, k->n);
  dvbf_place from = {k->rows.buffer, (size_t)i * (size_t)k->n, (size_t)k->n, 1};
  dv_emit(c, k->v, dv_number(c, 0));
  dvbf_code_product(c, dvbf_place_of(k->v), from, dvbf_place_of(k->p), 1, k->n, k->n);
  dvbf_code_sum(c, dvbf_place_of(number_at(k, 1)), 1, k->n, dv_times(c, h, dv_read(c, k->v)));
  dvbf_code_sum(c, dvbf_place_of(number_at(k, 2)), 1, k->n, dv_times(c, h, dv_read(c, k->a)));
}

/* a and p become those of (z, n) at mean [n_z] and cov [n_z][n_z]. */
static void begin_observation(builder *k, dvbf_value mean, dvbf_value cov) {
  dvbf_code *c = k->code;
  size_t n = (size_t)k->n;
  dv_emit(c, k->a, dv_number(c, 0));
  dvbf_code_each(c, dvbf_place_of(k->a), 1, k->n_z, dv_read(c, mean));
  dvbf_place p = {k->p.buffer, 0, n, 1}, all = {k->identity.buffer, 0, n, 1};
  dvbf_code_each(c, p, k->n, k->n, dvbf_code_read(c, all));
  dvbf_code_each(c, p, k->n_z, k->n_z,
                 dvbf_code_read(c, (dvbf_place){cov.buffer, cov.offset, (size_t)k->n_z, 1}));
}

/* Updates by x [n_x] where seen [n_x] is not 0; mean and variance of x go to `expect` first. */
static void observe(builder *k, dvbf_value x, dvbf_value seen, dvbf_value expect) {
  dvbf_code *c = k->code;
  size_t n = (size_t)k->n;
  for (int i = 0; i < k->n_x; i++) { /* before any value is taken in */
    dvbf_value mean = part_of(expect, (size_t)i, 1),
               variance = part_of(expect, (size_t)k->n_x + (size_t)i, 1);
    put_offset(k, i);
    put_row(k, i);
    dv_emit(c, mean, dv_plus(c, dv_read(c, number_at(k, 0)), dv_read(c, number_at(k, 2))));
    dv_emit(c, variance, dv_read(c, number_at(k, 1)));
  }
  for (int i = 0; i < k->n_x; i++) {
    dvbf_value at = part_of(x, (size_t)i, 1), there = part_of(seen, (size_t)i, 1);
    dvbf_value g = number_at(k, 3), e = number_at(k, 0);
    put_offset(k, i);
    put_row(k, i);
    dvbf_expr by = dv_over(c, dv_number(c, 1), dv_read(c, number_at(k, 1)));
    dv_emit(c, g, dvbf_code_choose(c, dv_read(c, there), by, dv_number(c, 0)));
    dvbf_expr apart = dv_minus(c, dv_minus(c, dv_read(c, at), dv_read(c, e)), dv_read(c, number_at(k, 2)));
    dv_emit(c, e, dvbf_code_choose(c, dv_read(c, there), dv_times(c, dv_read(c, g), apart), dv_number(c, 0)));
    dv_emit(c, k->a, dv_plus(c, dv_read(c, k->a), dv_times(c, dv_read(c, k->v), dv_read_one(c, e))));
    dvbf_place p = {k->p.buffer, 0, n, 1}, down = {k->v.buffer, 0, 1, 0}, right = {k->v.buffer, 0, 0, 1};
    dvbf_expr square = dv_times(c, dvbf_code_read(c, down), dvbf_code_read(c, right));
    dvbf_code_each(c, p, k->n, k->n,
                   dv_minus(c, dvbf_code_read(c, p), dv_times(c, square, dv_read_one(c, g))));
  }
}

static void add_control(builder *k, dvbf_value mean) {
  dvbf_code *c = k->code;
  dvbf_value by_u = dv_emit_room(c, 1, k->n_z);
  if (!k->n_u) return;
  dvbf_code_sum(
      c, (dvbf_place){by_u.buffer, 0, 1, 1}, k->n_z, k->n_u,
      dv_times(c, dvbf_code_read(c, (dvbf_place){k->b.buffer, 0, (size_t)k->n_u, 1}), dv_read_row(c, k->u)));
  dv_emit(c, mean, dv_plus(c, dv_read(c, mean), dv_read(c, by_u)));
}

/* mean [n_z], without B u, and cov [n_z][n_z] of the next step. */
static void move(builder *k, dvbf_value mean, dvbf_value cov) {
  dvbf_code *c = k->code;
  int n_z = k->n_z, n = k->n;
  dvbf_place half = dvbf_code_room(c, n_z, n), to = {cov.buffer, cov.offset, (size_t)n_z, 1};
  dvbf_place gain = {k->gain.buffer, 0, (size_t)n, 1}, down = {mean.buffer, mean.offset, 1, 1};
  dvbf_code_sum(c, down, n_z, n, dv_times(c, dvbf_code_read(c, gain), dv_read_row(c, k->a)));
  dv_emit(c, mean, dv_plus(c, dv_read(c, mean), dvbf_code_read(c, k->shift_z)));
  dvbf_code_each(c, half, n_z, n, dv_number(c, 0));
  dvbf_code_product(c, half, gain, dvbf_place_of(k->p), n_z, n, n);
  dvbf_code_each(c, to, n_z, n_z, dvbf_code_read(c, (dvbf_place){k->noise.buffer, 0, (size_t)n_z, 1}));
  dvbf_code_product(c, to, half, (dvbf_place){k->turned.buffer, 0, (size_t)n_z, 1}, n_z, n, n_z);
}

/* If nothing was observed in the step before (`any` is 0), states go no further than their limits. */
static void limit(builder *k, dvbf_value mean, dvbf_value cov, dvbf_value any) {
  dvbf_code *c = k->code;
  int n_z = k->n_z;
  size_t n = (size_t)n_z;
  dvbf_value by = dv_emit_room(c, 1, n_z), far = dv_emit_room(c, 1, n_z);
  dvbf_expr one = dv_number(c, 1), centre = dvbf_code_read(c, (dvbf_place){k->range.buffer, 0, 0, 1}),
            most = dvbf_code_read(c, (dvbf_place){k->range.buffer, n, 0, 1});
  dvbf_expr variance = dvbf_code_read(c, (dvbf_place){cov.buffer, cov.offset, 0, n + 1});
  dvbf_expr share = dv_over(c, most, dvbf_code_unary(c, DVBF_SQRT_OF, variance));
  dv_emit(c, by,
          dvbf_code_choose(c, dv_read_one(c, any), one, dvbf_code_binary(c, DVBF_SMALLER, share, one)));
  dvbf_place all = {cov.buffer, cov.offset, n, 1}, down = {by.buffer, 0, 1, 0}, right = {by.buffer, 0, 0, 1};
  dvbf_code_each(
      c, all, n_z, n_z,
      dv_times(c, dvbf_code_read(c, all), dv_times(c, dvbf_code_read(c, down), dvbf_code_read(c, right))));
  dvbf_expr apart = dv_minus(c, dv_read(c, mean), centre);
  dv_emit(c, far, dvbf_code_unary(c, DVBF_SIZE_OF, apart));
  dvbf_expr beyond = dvbf_code_unary(c, DVBF_TANH_OF, dv_minus(c, dv_over(c, dv_read(c, far), most), one));
  dvbf_expr bent = dv_times(c, most, dv_plus(c, one, beyond));
  dvbf_expr to = dvbf_code_choose(c, apart, dv_plus(c, centre, bent), dv_minus(c, centre, bent));
  dvbf_expr out = dvbf_code_choose(c, dv_minus(c, dv_read(c, far), most), to, dv_read(c, mean));
  dv_emit(c, mean, dvbf_code_choose(c, dv_read_one(c, any), dv_read(c, mean), out));
}

static void build(builder *k, dvbf_value state, dvbf_value x, dvbf_value seen, dvbf_value out) {
  dvbf_code *c = k->code;
  size_t z = (size_t)k->n_z, square = z * z;
  dvbf_expr begun = dv_read_one(c, part_of(state, z + square + 1, 1));
  dvbf_value mean = dv_emit_room(c, 1, k->n_z), cov = dv_emit_room(c, 1, k->n_z * k->n_z);
  dvbf_value next = part_of(out, 0, k->n_z), next_cov = part_of(out, z, k->n_z * k->n_z);
  dv_emit(c, mean, dv_read(c, part_of(state, 0, k->n_z)));
  dv_emit(c, cov, dv_read(c, part_of(state, z, k->n_z * k->n_z)));
  if (!k->feedthrough) add_control(k, mean);
  if (k->range.buffer >= 0) limit(k, mean, cov, part_of(state, z + square, 1));
  dv_emit(c, mean, dvbf_code_choose(c, begun, dv_read(c, mean), dvbf_code_read(c, k->mean)));
  dv_emit(c, cov, dvbf_code_choose(c, begun, dv_read(c, cov), dvbf_code_read(c, k->cov)));
  size_t behind = z + square + 2;
  dvbf_value expect = part_of(out, behind + 2 * z, 2 * k->n_x);
  begin_observation(k, mean, cov);
  observe(k, x, seen, expect);
  dv_emit(c, part_of(out, behind, k->n_z), dv_read(c, part_of(k->a, 0, k->n_z)));
  dvbf_place diagonal = {k->p.buffer, 0, 0, (size_t)k->n + 1};
  dvbf_code_each(c, dvbf_place_of(part_of(out, behind + z, k->n_z)), 1, k->n_z, dvbf_code_read(c, diagonal));
  move(k, next, next_cov);
  if (k->feedthrough) add_control(k, next);
  dvbf_code_sum(c, dvbf_place_of(part_of(out, z + square, 1)), 1, k->n_x, dv_read(c, seen));
  dv_emit(c, part_of(out, z + square + 1, 1), dv_number(c, 1));
}

dvbf_status dv_kalman_part(dv_code_part *out, const dv_state_space *s, bool feedthrough,
                           const dvbf_real *range, dvbf_error *error) {
  int n_z = s->n_z, n_x = s->n_x, n = n_z + n_x, state_size = (int)dv_kalman_part_state(n_z);
  *out = (dv_code_part){.name = "filter", .code = dv_code_new()};
  double *room = dv_calloc((size_t)n * (size_t)n * 3, sizeof *room);
  dv_noise_factors f = {room, room ? room + n * n : NULL, room ? room + 2 * n * n : NULL};
  builder k = {
      .code = out->code, .s = s, .n_z = n_z, .n_x = n_x, .n_u = s->n_u, .n = n, .feedthrough = feedthrough};
  bool done = out->code && room;
  if (done) {
    dv_noise_factors_of(s, &f);
    done = make_constants(&k, &f);
  }
  if (done) {
    k.range = range ? dv_code_constant(k.code, range, 2 * n_z, "range") : (dvbf_place){.buffer = -1};
    k.a = dv_emit_room(k.code, 1, n);
    k.p = dv_emit_room(k.code, 1, n * n);
    k.v = dv_emit_room(k.code, 1, n);
    k.one = dv_emit_room(k.code, 1, 4);
    k.u = dv_emit_room(k.code, 1, s->n_u ? s->n_u : 1);
    dvbf_value state = dv_emit_room(k.code, 1, state_size), x = dv_emit_room(k.code, 1, n_x),
               seen = dv_emit_room(k.code, 1, n_x),
               to = dv_emit_room(k.code, 1, state_size + 2 * n_z + 2 * n_x);
    build(&k, state, x, seen, to);
    out->slot[DV_SLOT_Z] = dv_slot_of(state);
    out->slot[DV_SLOT_X] = dv_slot_of(x);
    out->slot[DV_SLOT_SEEN] = dv_slot_of(seen);
    if (s->n_u) out->slot[DV_SLOT_U] = dv_slot_of(k.u);
    out->slot[DV_SLOT_OUT] = dv_slot_of(to);
  }
  dv_free(room);
  return done ? dv_code_status(out->code, error) : dv_fail_memory(error, "exporting a model");
}
