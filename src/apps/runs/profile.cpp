// SPDX-License-Identifier: Apache-2.0
// trireme profile
#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/record/run_lock.hpp"
#include "trireme/report/trace.hpp"

#include "apps/cli/commands.hpp"
#include "apps/cli/option_values.hpp"

#include <chrono>
#include <memory>
#include <set>
#include <thread>

namespace trireme::apps {
namespace {

namespace fs = std::filesystem;

struct ProfileOptions {
  fs::path run;
  std::int64_t steps = 3;
  double timeout = 600;
};

/// Folders of complete traces, with their times: steps may be recorded again.
std::set<std::pair<fs::path, fs::file_time_type>> traces_of(const fs::path& run) {
  std::set<std::pair<fs::path, fs::file_time_type>> all;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(run / "trace", error)) {
    if (entry.path().extension() != ".partial") {
      all.emplace(entry.path(), entry.last_write_time(error));
    }
  }
  return all;
}

base::Failure not_running(const fs::path& run) {
  return {base::ExitCode::usage,
          base::format("no process holds the run '{}' (only one that goes on can be asked); set "
                       "train.profile = 100..102 for its next start",
                       run.string())};
}

base::ExitCode profile(const ProfileOptions& options, Context& context) {
  const auto& run = options.run;
  if (!record::living_holder(run)) {
    const auto failure = not_running(run);
    throw base::Error(failure.code, failure.text);
  }
  const auto before = traces_of(run);
  const auto request = run / config::profile_request;
  base::write_file_durably(request, base::format("{}\n", options.steps));
  base::log::info("report", "the run records its next {} steps", options.steps);
  const auto deadline =
      std::chrono::steady_clock::now() + std::chrono::duration<double>(options.timeout);
  while (traces_of(run) == before) {
    const bool is_late = std::chrono::steady_clock::now() > deadline;
    if (is_late || !record::living_holder(run)) {
      std::error_code ignored;
      // Before the run has seen it: a later start is not to be surprised.
      fs::remove(request, ignored);
      throw base::Error(
          base::ExitCode::launch,
          is_late ? base::format("no trace came within {} (steps may take longer); raise --timeout",
                                 base::duration_text(options.timeout))
                  : base::format("the run '{}' has ended before its steps were recorded",
                                 run.string()));
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  context.out.write(report::trace_text(base::value_or_throw(report::read_trace(run, {}))));
  return base::ExitCode::done;
}

Action prepare_profile(CLI::App& app) {
  auto options = std::make_shared<ProfileOptions>();
  app.add_option("RUN", options->run, "Run directory of a run that goes on")
      ->required()
      ->type_name("PATH");
  app.add_option("--steps", options->steps, "Steps to record")
      ->type_name("N")
      ->check(in_range(std::int64_t{1}, config::StepRange::most_steps))
      ->capture_default_str();
  constexpr double longest = 86400;
  app.add_option("--timeout", options->timeout, "Seconds to wait for the trace")
      ->type_name("SECONDS")
      ->check(in_range(1.0, longest))
      ->capture_default_str();
  return [options](Context& context) { return profile(*options, context); };
}

}  // namespace

Command profile_command() {
  return {
      .name = "profile",
      .summary = "Records the next steps of a run that goes on, and tells where their time goes",
      .group = "Explanations",
      .details =
          "The run is not restarted: it finds the file RUN/PROFILE within a second, and each "
          "rank writes what it does in RUN/trace. trireme trace shows the same again, draws it, "
          "and writes it for Perfetto; docs/tracing.md.\n"
          "Example: trireme profile runs/a --steps 3",
      .prepare = prepare_profile};
}

}  // namespace trireme::apps
