/* Writes the models of exported.h as NAME.safetensors into a folder, for programs in other languages that try
 * what is exported (tests/peers, tests/embedded.sh). Usage: variants FOLDER */
#include "exported.h"

#include <cmocka.h>

int main(int count, char **arguments) {
  if (count != 2) return 2;
  for (int i = 0; i < VARIANTS; i++) {
    char path[1024];
    dvbf_error error;
    dvbf_model *model = make_variant(&variants[i]);
    snprintf(path, sizeof path, "%s/%s.safetensors", arguments[1], variants[i].name);
    if (dvbf_model_save(model, path, &error)) {
      fprintf(stderr, "%s\n", error.message);
      return 1;
    }
    printf("%s %d %d\n", variants[i].name, variants[i].n_x, variants[i].n_u);
    dvbf_model_free(model);
  }
  return 0;
}
