// SPDX-License-Identifier: Apache-2.0
// The price that a job which asks for nothing pays: every callback of the plugin in a fresh
// process, as srun, sbatch and slurmstepd call them, with an environment of 200 variables. One line
// a callback.
// usage: bench_spank_plugin PLUGIN.so [PROCESSES]
#include <dlfcn.h>
#include <sys/types.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

extern "C" {
#include <slurm/spank.h>
}

namespace {

spank_context_t played = S_CTX_LOCAL;
constexpr auto success = static_cast<spank_err_t>(ESPANK_SUCCESS);

}  // namespace

// Functions of Slurm that the plugin calls.
extern "C" {
spank_context_t spank_context() {
  return played;
}
spank_err_t spank_option_register(spank_t /*spank*/, spank_option* /*option*/) {
  return success;
}
spank_err_t spank_get_item(spank_t /*spank*/, spank_item_t item, ...) {
  if (item != S_JOB_ID) return static_cast<spank_err_t>(ESPANK_NOT_AVAIL);
  va_list arguments;
  va_start(arguments, item);
  *va_arg(arguments, unsigned int*) = 7;
  va_end(arguments);
  return success;
}
spank_err_t spank_getenv(spank_t /*spank*/, const char* /*name*/, char* /*value*/, int /*size*/) {
  return static_cast<spank_err_t>(ESPANK_ENV_NOEXIST);
}
spank_err_t spank_setenv(spank_t /*spank*/, const char* /*name*/, const char* /*value*/,
                         int /*overwrite*/) {
  return success;
}
spank_err_t spank_unsetenv(spank_t /*spank*/, const char* /*name*/) {
  return success;
}
void slurm_error(const char* /*format*/, ...) {}
void slurm_info(const char* /*format*/, ...) {}
void slurm_verbose(const char* /*format*/, ...) {}
}

namespace {

using Callback = int (*)(spank_t, int, char**);
using Times = std::array<double, 8>;
constexpr std::array<const char*, 7> callbacks{
    "slurm_spank_init",      "slurm_spank_init_post_opt", "slurm_spank_task_init_privileged",
    "slurm_spank_task_init", "slurm_spank_task_exit",     "slurm_spank_exit",
    "slurm_spank_job_epilog"};

struct Context {
  spank_context_t context;
  const char* name;
  std::size_t first;
  std::size_t count;
};
/// Who calls what: the submitting side knows no tasks.
constexpr std::array<Context, 4> contexts{
    Context{S_CTX_LOCAL, "srun", 0, 2}, Context{S_CTX_ALLOCATOR, "sbatch", 0, 2},
    Context{S_CTX_REMOTE, "slurmstepd", 0, 6}, Context{S_CTX_JOB_SCRIPT, "epilog", 6, 1}};

double microseconds_since(std::chrono::steady_clock::time_point begin) {
  return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - begin)
      .count();
}

/// In a child process: loads the plugin and calls each callback once. The last entry is loading.
Times call_once(const char* plugin, const Context& context) {
  Times times{};
  auto begin = std::chrono::steady_clock::now();
  void* library = ::dlopen(plugin, RTLD_NOW | RTLD_LOCAL);
  times.back() = microseconds_since(begin);
  if (library == nullptr) {
    std::fprintf(stderr, "%s\n", ::dlerror());
    ::_exit(1);
  }
  for (std::size_t index = context.first; index < context.first + context.count; ++index) {
    void* symbol = ::dlsym(library, callbacks[index]);
    if (symbol == nullptr) ::_exit(1);
    const auto call = reinterpret_cast<Callback>(symbol);
    begin = std::chrono::steady_clock::now();
    if (call(nullptr, 0, nullptr) != ESPANK_SUCCESS) ::_exit(1);
    times[index] = microseconds_since(begin);
  }
  return times;
}

Times in_child(const char* plugin, const Context& context) {
  int ends[2] = {};
  if (::pipe(ends) != 0) std::exit(1);
  const pid_t child = ::fork();
  if (child == 0) {
    played = context.context;
    const auto times = call_once(plugin, context);
    ::_exit(::write(ends[1], times.data(), sizeof times) == sizeof times ? 0 : 1);
  }
  ::close(ends[1]);
  Times times{};
  const bool whole = ::read(ends[0], times.data(), sizeof times) == sizeof times;
  ::close(ends[0]);
  int status = 0;
  if (::waitpid(child, &status, 0) != child || status != 0 || !whole) {
    std::fprintf(stderr, "a callback failed in %s\n", context.name);
    std::exit(1);
  }
  return times;
}

void print(const char* who, const char* what, std::vector<double> all) {
  std::sort(all.begin(), all.end());
  std::printf("%-10s %-34s median %7.1f us   slowest %7.1f us\n", who, what, all[all.size() / 2],
              all.back());
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 2) {
    std::fprintf(stderr, "usage: bench_spank_plugin PLUGIN.so [PROCESSES]\n");
    return 2;
  }
  const int processes = count > 2 ? std::max(1, std::atoi(arguments[2])) : 200;
  for (int number = 0; number < 200; ++number) {
    ::setenv(("A_VARIABLE_" + std::to_string(number)).c_str(), "with a value of some length", 1);
  }
  for (const auto& context : contexts) {
    std::vector<Times> samples;
    for (int number = 0; number < processes; ++number) {
      samples.push_back(in_child(arguments[1], context));
    }
    const auto column = [&](std::size_t index) {
      std::vector<double> all;
      for (const auto& times : samples) all.push_back(times[index]);
      return all;
    };
    print(context.name, "loading", column(callbacks.size()));
    for (std::size_t index = context.first; index < context.first + context.count; ++index) {
      print(context.name, callbacks[index], column(index));
    }
  }
  return 0;
}
