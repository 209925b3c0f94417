// SPDX-License-Identifier: Apache-2.0
/* The options of pyxis that slurm/container.sbatch uses, without containers: a task's values are
 * printed by srun, and tasks start as they would without. For tests where there is no pyxis. */
#include <slurm/spank.h>
#include <stdio.h>

SPANK_PLUGIN(pyxis_options, 1)

static const char* const names[] = {"container-image", "container-mounts", "container-workdir"};

static int note(int which, const char* value, int remote) {
  if (!remote) fprintf(stderr, "%s=%s\n", names[which], value);
  return ESPANK_SUCCESS;
}

int slurm_spank_init(spank_t spank, int count, char** arguments) {
  (void)count;
  (void)arguments;
  if (spank_context() != S_CTX_LOCAL && spank_context() != S_CTX_REMOTE) return ESPANK_SUCCESS;
  for (int index = 0; index < 3; ++index) {
    struct spank_option option = {(char*)names[index], "VALUE", "as pyxis has it", 1, index, note};
    if (spank_option_register(spank, &option) != ESPANK_SUCCESS) return ESPANK_ERROR;
  }
  return ESPANK_SUCCESS;
}
