// SPDX-License-Identifier: Apache-2.0
// Entry points of the plugin: C functions of one guarded line each. No exception leaves this file,
// and only a refused request fails a callback: on a node a failure would drain it.
#include "callbacks.hpp"

#include <exception>

using trireme::spank::Callbacks;

namespace {

Callbacks& callbacks() {
  static Callbacks instance;
  return instance;
}

template <typename Body>
int guarded(Body&& body) noexcept {
  try {
    return body(callbacks());
  } catch (const std::exception& error) {
    slurm_error("trireme: %s (the job goes on without its plugin)", error.what());
  } catch (...) {
    slurm_error("trireme: something unknown was thrown (the job goes on without its plugin)");
  }
  return ESPANK_SUCCESS;
}

int note_option(int value, const char* argument, int remote) {
  return guarded([&](Callbacks& all) { return all.option(value, argument, remote != 0); });
}

}  // namespace

extern "C" {

extern const char plugin_name[] = "trireme";
extern const char plugin_type[] = "spank";
extern const unsigned int plugin_version = SLURM_VERSION_NUMBER;
extern const unsigned int spank_plugin_version = 1;

int slurm_spank_init(spank_t spank, int count, char** arguments) {
  return guarded([&](Callbacks& all) { return all.init(spank, count, arguments, note_option); });
}
int slurm_spank_init_post_opt(spank_t spank, int /*count*/, char** /*arguments*/) {
  return guarded([&](Callbacks& all) { return all.options_done(spank); });
}
int slurm_spank_task_init_privileged(spank_t /*spank*/, int /*count*/, char** /*arguments*/) {
  return guarded([](Callbacks& all) { return all.raise_limits(); });
}
int slurm_spank_task_init(spank_t spank, int /*count*/, char** /*arguments*/) {
  return guarded([&](Callbacks& all) { return all.prepare_task(spank); });
}
int slurm_spank_task_exit(spank_t spank, int /*count*/, char** /*arguments*/) {
  return guarded([&](Callbacks& all) { return all.record_task(spank); });
}
int slurm_spank_exit(spank_t /*spank*/, int /*count*/, char** /*arguments*/) {
  return guarded([](Callbacks& all) { return all.end(); });
}
int slurm_spank_job_epilog(spank_t spank, int count, char** arguments) {
  return guarded([&](Callbacks& all) { return all.job_ended(spank, count, arguments); });
}

}  // extern "C"
