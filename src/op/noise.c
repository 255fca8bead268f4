#include "base/random.h"
#include "op/emit.h"
#include "op/op.h"

#include <string.h>

enum { CHUNK = 256 }; /* Philox blocks turned into normals at once */

typedef struct noise_data {
  uint32_t number;              /* of this stream of noise in the program */
  int step;                     /* of the stream, of the first step of the value */
  bool shared;                  /* by all sequences */
  int dropout, run, zero, wait; /* scalars */
} noise_data;

/* A block of random bits is keyed by the number of the stream in 8 bits and the step in 24. */
enum { MOST_NUMBERS = 1 << 8, MOST_STEPS = 1 << 24 };

static noise_data new_noise(dvbf_graph *g, dvbf_value out, bool shared) {
  noise_data data = {
      .number = (uint32_t)dv_graph_noise_number(g), .step = dv_graph_noise_step(g), .shared = shared};
  if (data.number >= MOST_NUMBERS || out.steps > MOST_STEPS - data.step)
    dvbf_refuse(g, "a program has at most %d streams of noise of %d steps; stream %u has %d", MOST_NUMBERS,
                MOST_STEPS, data.number, out.steps);
  return data;
}

/* Block `index` of step t of a value. */
static dv_block block_at(const dvbf_run *run, const noise_data *d, int t, int row, uint32_t index) {
  const dv_conditions *s = run->conditions;
  uint32_t sequence = d->shared ? UINT32_MAX : run->sequence[row];
  return dv_random_block(s->seed, s->stream | index << 8, sequence, d->number << 24 | (uint32_t)(d->step + t),
                         s->update);
}

/* Rows are dealt with in chunks that fit the stack: bits first, then all normals of the chunk in one sweep.
 */
static void noise_forward(const dvbf_op *op, dvbf_run *run) {
  const noise_data *d = op->data;
  dvbf_value v = op->out[0];
  dvbf_real *out = dv_at(run, v), normal[4 * CHUNK];
  uint32_t words[4 * CHUNK];
  if (run->conditions->noise_free) {
    memset(out, 0, (size_t)v.steps * (size_t)v.rows * (size_t)v.cols * sizeof *out);
    return;
  }
  int blocks = (v.cols + 3) / 4, rows = v.steps * v.rows, row = 0, block = 0;
  while (row < rows) {
    int first_row = row, first_block = block, n = 0;
    for (; n < CHUNK && row < rows; n++) {
      dv_block bits = block_at(run, d, row / v.rows, row % v.rows, (uint32_t)block);
      memcpy(words + 4 * n, bits.word, sizeof bits.word);
      if (++block == blocks) block = 0, row++;
    }
    run->k->normals(normal, words, 4 * (size_t)n);
    for (int i = 0, r = first_row, b = first_block; i < n; i++) {
      int left = v.cols - 4 * b;
      memcpy(out + (size_t)r * v.cols + 4 * b, normal + 4 * i, (size_t)(left < 4 ? left : 4) * sizeof *out);
      if (++b == blocks) b = 0, r++;
    }
  }
}

static void noise_emit(const dvbf_op *op, dvbf_code *code) {
  const noise_data *d = op->data;
  dvbf_code_noise(code, op->out[0], (int)d->number, d->shared);
}

static const dvbf_op_class noise_class = {"noise", noise_forward, NULL, noise_emit};

void dvbf_noise(dvbf_graph *g, dvbf_value out, bool shared) {
  noise_data data = new_noise(g, out, shared);
  dvbf_record(g, &noise_class, 0, NULL, 1, &out, &data, sizeof data);
}

/* Dropped steps come in runs: a chain that stays dropped with probability `stay` and whose share of dropped
 * steps is `dropout` at every step. */
static void use_forward(const dvbf_op *op, dvbf_run *run) {
  const noise_data *d = op->data;
  dvbf_value v = op->out[0];
  dvbf_real *use = dv_at(run, v), *mask = dv_at(run, op->in[0]);
  double dropout = run->scalars[d->dropout], stay = fmax(dropout, 1 - 1 / run->scalars[d->run]);
  double begin = dropout < 1 ? dropout * (1 - stay) / (1 - dropout) : 1;
  int wait = (int)run->scalars[d->wait];
  dvbf_real taken = run->scalars[d->zero] > 0 ? -1 : 0;
  for (int r = 0; r < v.rows; r++) {
    bool dropped = false;
    for (int t = 0; t < v.steps; t++) {
      int i = t * v.rows + r;
      double threshold = !t ? dropout : dropped ? stay : begin;
      dropped = dropout > 0 && dv_uniform_of(block_at(run, d, t, r, 0).word[0]) < threshold;
      use[i] = !(mask[i] > 0) || d->step + t < wait ? 0 : dropped ? taken : 1;
    }
  }
}

/* A trained model drops no frame. */
static void use_emit(const dvbf_op *op, dvbf_code *code) {
  dv_emit(code, op->out[0],
          dvbf_code_choose(code, dv_read(code, op->in[0]), dv_number(code, 1), dv_number(code, 0)));
}

static const dvbf_op_class use_class = {"filter-use", use_forward, NULL, use_emit};

void dvbf_filter_use(dvbf_graph *g, dvbf_value use, dvbf_value mask) {
  noise_data data = new_noise(g, use, false);
  data.dropout = dvbf_scalar(g, DVBF_FILTER_DROPOUT, 0);
  data.run = dvbf_scalar(g, DVBF_FILTER_DROPOUT_RUN, 1);
  data.wait = dvbf_scalar(g, DVBF_FILTER_WAIT, 0);
  data.zero = dvbf_scalar(g, DVBF_FILTER_DROPOUT_ZERO, 0);
  dvbf_record(g, &use_class, 1, &mask, 1, &use, &data, sizeof data);
}

/* ---- A row left out: out = k x, d x += k d out, k = 0 or 1 for all steps of a row ---- */

static bool is_left_out(const dvbf_run *run, const noise_data *d, int row) {
  double dropout = run->scalars[d->dropout];
  return dropout > 0 && dv_uniform_of(block_at(run, d, 0, row, 0).word[0]) < dropout;
}

static void row_dropout_forward(const dvbf_op *op, dvbf_run *run) {
  dvbf_value v = op->out[0];
  size_t n = (size_t)v.cols;
  const dvbf_real *x = dv_at(run, op->in[0]);
  dvbf_real *out = dv_at(run, v);
  for (int r = 0; r < v.rows; r++) {
    bool left_out = is_left_out(run, op->data, r);
    for (int t = 0; t < v.steps; t++) {
      size_t at = ((size_t)t * (size_t)v.rows + (size_t)r) * n;
      if (left_out)
        memset(out + at, 0, n * sizeof *out);
      else
        memcpy(out + at, x + at, n * sizeof *out);
    }
  }
}

static void row_dropout_backward(const dvbf_op *op, dvbf_run *run) {
  dvbf_value v = op->out[0];
  size_t n = (size_t)v.cols;
  const dvbf_real *d = dvbf_gradient_at(run, v);
  dvbf_real *d_x = dvbf_gradient_at(run, op->in[0]);
  for (int r = 0; r < v.rows; r++) {
    if (is_left_out(run, op->data, r)) continue;
    for (int t = 0; t < v.steps; t++) {
      size_t at = ((size_t)t * (size_t)v.rows + (size_t)r) * n;
      for (size_t i = at; i < at + n; i++) d_x[i] += d[i];
    }
  }
}

static void row_dropout_emit(const dvbf_op *op, dvbf_code *code) {
  dv_emit(code, op->out[0], dv_read(code, op->in[0]));
}

static const dvbf_op_class row_dropout_class = {"row-dropout", row_dropout_forward, row_dropout_backward,
                                                row_dropout_emit};

void dv_record_row_dropout(dvbf_graph *g, dvbf_value out, dvbf_value x, const char *scalar) {
  noise_data data = new_noise(g, out, false);
  data.dropout = dvbf_scalar(g, scalar, 0);
  if (x.steps != out.steps || x.rows != out.rows || x.cols != out.cols)
    dvbf_refuse(g, "%d steps of %d do not fit %d of %d", x.steps, x.cols, out.steps, out.cols);
  dvbf_record(g, &row_dropout_class, 1, &x, 1, &out, &data, sizeof data);
}

/* ---- out = numbers in (0, 1); 1/2 in a run without noise ---- */

static void uniform_forward(const dvbf_op *op, dvbf_run *run) {
  const noise_data *d = op->data;
  dvbf_value v = op->out[0];
  dvbf_real *out = dv_at(run, v);
  for (int i = 0; i < v.steps * v.rows; i++)
    out[i] = run->conditions->noise_free
                 ? (dvbf_real)0.5
                 : (dvbf_real)dv_uniform_of(block_at(run, d, i / v.rows, i % v.rows, 0).word[0]);
}

static const dvbf_op_class uniform_class = {"uniform", uniform_forward, NULL, NULL};

void dv_record_uniform(dvbf_graph *g, dvbf_value out) {
  noise_data data = new_noise(g, out, false);
  dvbf_record(g, &uniform_class, 0, NULL, 1, &out, &data, sizeof data);
}
