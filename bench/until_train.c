/* Trains on the pendulum until R^2 on held-out sequences passes the paper's, and says how long it took: what
 * the twins do with --until-r2, on the same recipe (bench/peers/common.py). Usage: bench_until DATA.h5 SEED
 * [SETTING VALUE]... */
#include "bench.h"

#include "evaluate/evaluate.h"
#include "model/batches.h"
#include "train/pca_training.h"

enum { FIRST_CHECK = 300, CHECK_EVERY = 50, STATES = 3 };
static const double paper[STATES] = {0.961, 0.982, 0.916}; /* sin, cos, velocity: Table 1 */

/* Every value that common.py has in conditions() and parse(); the rest of the model are our defaults there.
 */
static const char *const recipe[] = {"initial",
                                     "mlp",
                                     "initial-frames",
                                     "5",
                                     "updates",
                                     "1300",
                                     "batch-size",
                                     "50",
                                     "learning-rate",
                                     "4e-3",
                                     "decay",
                                     "cosine",
                                     "sigma-floor",
                                     "0.1",
                                     "sigma-floor-until",
                                     "1000",
                                     "filter-dropout",
                                     "0.4",
                                     "filter-dropout-end",
                                     "0",
                                     "filter-dropout-until",
                                     "700",
                                     "clip-spike",
                                     "0",
                                     "threads",
                                     "2",
                                     NULL};

/* ---- R^2 of samples of z ---- */

typedef struct held_out {
  const dvbf_sequences *sequences; /* with their state */
  const dvbf_sequences *seen;      /* the same as the model sees them */
  dv_pass pass;
  float *z; /* [count][steps][n_z] */
} held_out;

static void collect(void *user, const dv_worker *w, size_t shard, size_t first, int count) {
  (void)shard;
  const dvbf_program *p = w->program;
  const held_out *h = user;
  const dvbf_real *z = dvbf_at(&w->run, p->z); /* [steps][rows][n_z] */
  size_t n_z = (size_t)p->z.cols, rows = (size_t)p->rows, steps = (size_t)p->steps;
  for (size_t r = 0; r < (size_t)count; r++)
    for (size_t t = 0; t < steps; t++)
      for (size_t i = 0; i < n_z; i++)
        h->z[((first + r) * steps + t) * n_z + i] = (float)z[(t * rows + r) * n_z + i];
}

/* Fills r2 [STATES]; whether all are above the paper's. Without a finite z they stay as they are. */
static bool passes(held_out *h, uint64_t seed, double *r2) {
  dvbf_error error;
  const dvbf_sequences *s = h->sequences;
  size_t n_z = (size_t)h->pass.model->n_z, frames = s->count * s->steps;
  dv_conditions conditions = dv_model_conditions(h->pass.model, seed);
  must(dv_pass_run(&h->pass, h->seen, &conditions, collect, h, &error), &error);
  for (size_t i = 0; i < frames * n_z; i++)
    if (!isfinite(h->z[i])) return false;
  bool all = true;
  for (size_t i = 0; i < STATES; i++) {
    double log_likelihood;
    must(dv_regress(h->z, frames, n_z, s->state + i, s->n_s, &r2[i], &log_likelihood, NULL, &error), &error);
    all &= r2[i] > paper[i];
  }
  return all;
}

/* ---- Training ---- */

static dvbf_settings *settings_of(const char *const *more) {
  dvbf_error error;
  dvbf_settings *s = NULL;
  must(dvbf_settings_new(&s, "train", &error), &error);
  for (const char *const *r = recipe; *r; r += 2) must(dvbf_settings_set(s, r[0], r[1], &error), &error);
  for (; *more; more += 2) must(dvbf_settings_set(s, more[0], more[1], &error), &error);
  return s;
}

/* *model is one of components where the settings ask for it, as in dvbf_train; *p holds their data then. */
static void make_model(dvbf_model **model, dv_projection *p, const dvbf_settings *settings,
                       const dvbf_data *data, uint64_t seed) {
  dvbf_error error;
  *p = (dv_projection){0};
  must(dv_model_new(model, settings, NULL, &data->train, seed, &error), &error);
  if ((*model)->settings->projection <= 0) return;
  must(dv_projection_init(p, *model, data, &error), &error);
  must(dv_projection_model(model, p, data->train.steps, seed, &error), &error);
}

static int train(const dvbf_data *data, const dvbf_settings *settings, uint64_t seed) {
  dvbf_error error;
  dvbf_model *model = NULL;
  dv_projection projection;
  dv_threads *pool = NULL;
  dv_updater *updater = NULL;
  make_model(&model, &projection, settings, data, seed);
  const dvbf_sequences *seen = projection.whole ? &projection.data.train : &data->train;
  held_out held = {&data->valid, projection.whole ? &projection.data.valid : &data->valid, {0}, NULL};
  must(dv_threads_new(&pool, (unsigned)model->settings->threads, &error), &error);
  must(dv_updater_new(&updater, model, pool, seen, false, &error), &error);
  dv_updater_reset(updater, seed);
  must(dv_pass_init(&held.pass, model, pool, held.seen, 0, &error), &error);
  held.z = dv_calloc(data->valid.count * data->valid.steps, (size_t)model->n_z * sizeof *held.z);
  uint64_t done = 0, last = (uint64_t)model->settings->updates;
  double seconds = 0, r2[STATES] = {0};
  bool passed = false, alive = true;
  while (done < last && alive && !passed) {
    uint64_t next = done ? done + CHECK_EVERY : FIRST_CHECK, wanted = (next < last ? next : last) - done;
    double began = now();
    uint64_t made = dv_updater_run(updater, wanted);
    seconds += now() - began;
    done += made;
    alive = made == wanted;
    passed = alive && passes(&held, seed + 1000000, r2);
  }
  printf("{\"passed\": %s, \"updates\": %d, \"seconds\": %.4f, \"r2\": [%.4f, %.4f, %.4f]}\n",
         passed ? "true" : "false", (int)done, seconds, r2[0], r2[1], r2[2]);
  dv_free(held.z);
  dv_pass_clear(&held.pass);
  dv_updater_free(updater);
  dv_threads_free(pool);
  dvbf_model_free(model);
  dv_projection_clear(&projection);
  return !passed;
}

int main(int count, char **arguments) {
  if (count < 3 || count % 2 == 0) {
    fprintf(stderr, "usage: bench_until DATA.h5 SEED [SETTING VALUE]...\n");
    return 2;
  }
  dvbf_error error;
  dvbf_data *data = NULL;
  dvbf_settings *settings = settings_of((const char *const *)arguments + 3);
  must(dvbf_data_read(&data, arguments[1], settings, &error), &error);
  if (data->valid.n_s < STATES || !data->valid.count) {
    fprintf(stderr, "bench_until: %s has no state of held-out sequences\n", arguments[1]);
    return 2;
  }
  int status = train(data, settings, strtoull(arguments[2], NULL, 10));
  dvbf_data_free(data);
  dvbf_settings_free(settings);
  return status;
}
