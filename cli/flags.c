/* Settings as the command line spells them: `name = value` in the library's sentences becomes --name value
 * (cli_flags), and names that other programs use are answered with the flag here (cli_name_of_the_field). */
#include "flags.h"

#include <dvbf/dvbf.h>
#include <stdio.h>
#include <string.h>

/* ---- Flags in sentences ---- */

static bool is_setting(const char *name, size_t length) {
  static const char *const tables[] = {"train",  "predict",  "filter", "smooth",
                                       "sample", "evaluate", "export"};
  dvbf_setting_info info;
  for (size_t k = 0; k < sizeof tables / sizeof *tables; k++)
    for (size_t i = 0; dvbf_settings_table(tables[k], i, &info); i++)
      if (strlen(info.name) == length && !strncmp(info.name, name, length)) return true;
  return false;
}

static bool in_word(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
         (c && strchr("-_./", c));
}

/* Length of a word that names a setting; a following " = " is passed too. 0: it names none. */
static size_t setting_at(const char *at, size_t *passed) {
  size_t length = strspn(at, "abcdefghijklmnopqrstuvwxyz0123456789-");
  bool value = !strncmp(at + length, " = ", 3);
  *passed = length + (value ? 2 : 0); /* the blank before the value stays */
  if (!length || *at == '-' || (!value && in_word(at[length]) && at[length] != '.')) return 0;
  if (!value && !memchr(at, '-', length)) return 0; /* a word like any other */
  return is_setting(at, length) ? length : 0;
}

void cli_flags(char *out, size_t size, const char *sentence) {
  size_t used = 0;
  for (const char *at = sentence; *at && used + 1 < size;) {
    size_t passed = 1, length = at == sentence || !in_word(at[-1]) ? setting_at(at, &passed) : 0;
    if (!length) {
      out[used++] = *at++;
      continue;
    }
    int written = snprintf(out + used, size - used, "--%.*s", (int)length, at);
    used += written > 0 ? (size_t)written : 0;
    if (used >= size) used = size - 1;
    at += passed;
  }
  out[used] = 0;
}

/* ---- Names of other programs ---- */

typedef struct field_name {
  const char *name, *sentence;
} field_name;

static const field_name field_names[] = {
    {"epochs", "training is counted in updates, one for each minibatch: --updates"},
    {"epoch", "training is counted in updates, one for each minibatch: --updates"},
    {"max-epochs", "training is counted in updates, one for each minibatch: --updates"},
    {"iterations", "did you mean --updates?"},
    {"iters", "did you mean --updates?"},
    {"max-iter", "did you mean --updates?"},
    {"max-steps", "did you mean --updates?"},
    {"num-steps", "did you mean --updates, or --steps of predict?"},
    {"lr", "did you mean --learning-rate?"},
    {"rate", "did you mean --learning-rate?"},
    {"step-size", "did you mean --learning-rate?"},
    {"batch", "did you mean --batch-size?"},
    {"bs", "did you mean --batch-size?"},
    {"minibatch", "did you mean --batch-size?"},
    {"hidden-size", "did you mean --hidden?"},
    {"hidden-dim", "did you mean --hidden?"},
    {"hidden-units", "did you mean --hidden?"},
    {"units", "did you mean --hidden?"},
    {"width", "did you mean --hidden?"},
    {"depth", "did you mean --layers?"},
    {"num-layers", "did you mean --layers?"},
    {"latent-dim", "did you mean --latent?"},
    {"latent-size", "did you mean --latent?"},
    {"z-dim", "did you mean --latent?"},
    {"state-dim", "did you mean --latent?"},
    {"order", "did you mean --latent?"},
    {"input", "the columns of the inputs are chosen by --inputs"},
    {"control", "the columns of the inputs are chosen by --inputs"},
    {"exogenous", "the columns of the inputs are chosen by --inputs"},
    {"target", "the columns to predict are chosen by --outputs; -o names the folder or the file to write"},
    {"targets", "the columns to predict are chosen by --outputs; -o names the folder or the file to write"},
    {"columns", "columns are chosen by --outputs and --inputs"},
    {"horizon", "`dvbf predict` takes the steps to predict as --steps; training needs none"},
    {"ahead", "`dvbf predict` takes the steps to predict as --steps"},
    {"forecast-steps", "`dvbf predict` takes the steps to predict as --steps"},
    {"context", "`dvbf predict` takes the observed steps as --observe"},
    {"sequence-length", "did you mean --window?"},
    {"seq-len", "did you mean --window?"},
    {"device", "dvbf runs on the processor alone, on all its cores: --threads"},
    {"gpu", "dvbf runs on the processor alone, on all its cores: --threads"},
    {"cuda", "dvbf runs on the processor alone, on all its cores: --threads"},
    {"workers", "did you mean --threads?"},
    {"jobs", "did you mean --threads?"},
    {"n-jobs", "did you mean --threads?"},
    {"verbose", "progress is shown unless --quiet is given; --json prints results for scripts"},
    {"debug", "progress is shown unless --quiet is given; --json prints results for scripts"},
    {"silent", "did you mean --quiet?"},
    {"overwrite", "did you mean --force?"},
    {"continue", "did you mean --resume?"},
    {"random-state", "did you mean --seed?"},
    {"random-seed", "did you mean --seed?"},
    {"validation-split", "did you mean --valid-share?"},
    {"val-split", "did you mean --valid-share?"},
    {"test-size", "did you mean --test-share?"},
    {"test-split", "did you mean --test-share?"},
    {"ensemble", "did you mean --search, which keeps the best --members?"},
    {"early-stopping", "the best model by validation is kept anyway; --updates bounds the time"},
    {"patience", "the best model by validation is kept anyway; --updates bounds the time"},
    {"normalize", "did you mean --x-scaling?"},
    {"standardize", "did you mean --x-scaling?"},
    {"beta", "the weight of the KL divergence is annealed by --temperature-start and --temperature-updates"},
    {"kl-weight",
     "the weight of the KL divergence is annealed by --temperature-start and --temperature-updates"},
    {"loss", "the emission is chosen by --likelihood"},
    {"emission", "the emission is chosen by --likelihood"},
    {"out", "did you mean --output?"},
    {"outdir", "did you mean --output?"},
    {"save", "did you mean --output?"},
};

const char *cli_name_of_the_field(const char *name) {
  char plain[64];
  snprintf(plain, sizeof plain, "%s", name);
  for (char *c = plain; *c; c++)
    if (*c == '_') *c = '-';
  for (size_t i = 0; i < sizeof field_names / sizeof *field_names; i++)
    if (!strcmp(field_names[i].name, plain)) return field_names[i].sentence;
  return NULL;
}
