/* Writes the exported models of variants.h as NAME.safetensors into a folder, for programs in other languages
 * that try what is exported (tests/peers, examples/embedded). Usage: variants FOLDER */
#include "exported.h"

#include <cmocka.h>

int main(int count, char **arguments) {
  if (count != 2) return 2;
  for (const variant *v = NULL; (v = next_variant(v, EXPORT));) {
    char path[1024];
    dvbf_error error;
    dvbf_model *model = make_variant(v);
    snprintf(path, sizeof path, "%s/%s.safetensors", arguments[1], v->name);
    if (dvbf_model_save(model, path, &error)) {
      fprintf(stderr, "%s\n", error.message);
      return 1;
    }
    printf("%s %d %d\n", v->name, v->n_x, v->n_u);
    dvbf_model_free(model);
  }
  return 0;
}
