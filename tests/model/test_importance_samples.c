/* Bounds of several samples: where they do not apply, a sentence names the setting and what it takes. */
#include "given.h"

#include "data/dataset.h"

#include <math.h>

typedef struct trial {
  const char *settings, *answer; /* answer = NULL: it trains */
} trial;

static const trial trials[] = {
    {"resample=on importance-samples=4 universal=point", NULL},
    {"resample=on importance-samples=4 model=vrnn", NULL},
    {"resample=on importance-samples=4 model=storn", NULL},
    {"resample=on universal=point", "resample = on has nothing to choose from with importance-samples = 1, "
                                    "which must be in [2, 256]; 8 works well"},
    {"resample=on importance-samples=4 universal=bayesian",
     "resample = on needs universal = point, not a distribution"},
    {"resample=on importance-samples=4 universal=point recognition=smoothing",
     "resample = on needs recognition = filtering: a particle filter sees no later frames"},
    {"resample=on importance-samples=4 model=dkf",
     "resample = on needs a model that can filter, which the model dkf cannot; leave it off"},
    {"resample=on model=e2c", "resample = on: model = e2c does not use this setting, which belongs to dvbf, "
                              "dkf, vae, vrnn, storn; leave "
                              "it out"},
};

static dvbf_data some_data(void) {
  dvbf_data data = {.train = {.count = 4, .steps = 20, .n_x = 2, .n_u = 1}};
  assert_int_equal(dv_sequences_allocate(&data.train, false, NULL), DVBF_OK);
  for (size_t i = 0; i < (size_t)4 * 20 * 2; i++) data.train.x[i] = sinf(0.3F * (float)i);
  return data;
}

static void resampling_is_refused_where_it_does_not_apply(void **state) {
  (void)state;
  dvbf_data data = some_data();
  for (size_t i = 0; i < sizeof trials / sizeof *trials; i++) {
    const trial *t = &trials[i];
    dvbf_settings *settings = settings_of("train", "updates=1 hidden=4 latent=2 starts=1 batch-size=2");
    dvbf_model *model = NULL;
    dvbf_error error = {0};
    set_all(settings, t->settings);
    dvbf_status status = dvbf_train(&model, settings, &data, NULL, &error);
    if (t->answer ? status != DVBF_ARGUMENT || strcmp(error.message, t->answer) != 0 : status != DVBF_OK)
      fail_msg("%s: %s", t->settings, error.message);
    dvbf_model_free(model);
    dvbf_settings_free(settings);
  }
  dvbf_sequences_free(&data.train);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(resampling_is_refused_where_it_does_not_apply)};
  return cmocka_run_group_tests_name("several samples", tests, NULL, NULL);
}
