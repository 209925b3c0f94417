// SPDX-License-Identifier: Apache-2.0
// trireme train: argv to Trainer. Next: src/runtime/session.cpp, src/train/trainer.cpp.
#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/base/log.hpp"
#include "trireme/base/shell_word.hpp"
#include "trireme/device/gpu_activity.hpp"
#include "trireme/record/failure.hpp"
#include "trireme/record/run_placement.hpp"
#include "trireme/record/task_record.hpp"
#include "trireme/runtime/gather_placement.hpp"
#include "trireme/runtime/session.hpp"
#include "trireme/runtime/time_limit.hpp"
#include "trireme/track/live.hpp"
#include "trireme/train/stop_signal.hpp"
#include "trireme/train/trainer.hpp"

#include "apps/chosen_layout.hpp"
#include "apps/cli/commands.hpp"
#include "apps/cli/config_arguments.hpp"
#include "apps/cli/config_check.hpp"
#include "apps/cli/shared_options.hpp"
#include "apps/local_ranks.hpp"
#include "apps/node_endpoint.hpp"
#include "apps/runs/run_report.hpp"
#include "apps/save_interval.hpp"
#include "apps/session_options.hpp"
#include "apps/step_prediction.hpp"
#include "apps/version.hpp"

#include <chrono>

namespace trireme::apps {
namespace {

constexpr int most_local_ranks = 4096;

/// Trackers of track.to; mistakes end the start before MPI.
std::vector<track::Target> trackers_of(const config::TrackOptions& options) {
  std::vector<track::Target> targets;
  for (const auto& text : options.to) {
    targets.push_back(base::value_or_throw(track::parse_target(text)));
  }
  return targets;
}

std::unique_ptr<track::Live> start_tracking(const config::Config& config,
                                            const base::Environment& environment) {
  const auto& options = config.options().track;
  if (options.to.empty()) return nullptr;
  const std::chrono::duration<double> interval(options.interval);
  return std::make_unique<track::Live>(
      config::run_directory(config), trackers_of(options),
      track::Live::Options{environment,
                           std::chrono::duration_cast<std::chrono::milliseconds>(interval),
                           options.trace_ranks});
}

/// The same trackers from any working directory: the run writes them down. A name that a list
/// cannot hold stays as it was given.
config::Config with_absolute_targets(const config::Config& config) {
  constexpr const char* key = "track.to";
  std::vector<std::string> texts;
  for (const auto& target : trackers_of(config.options().track)) texts.push_back(target.text());
  if (texts.empty()) return config;
  const auto text = schema::value_text(*schema::find_key(key), texts);
  const auto with = config.with(key, text, config.origin(key));
  return with.ok() && with->options().track.to == texts ? *with : config;
}

/// Refuses a start that the ranks would refuse.
void check_start(const config::Config& config, int ranks) {
  const auto verdict = base::value_or_throw(check_run(config, ranks));
  if (!verdict.missing.empty()) {
    throw base::Error(base::ExitCode::checkpoint, verdict.missing.front());
  }
}

/// Ranges of spans for the tool that has started this program (Nsight Systems); null without one.
std::unique_ptr<telemetry::SpanObserver> nvtx_ranges(const base::Environment& environment) {
  return environment.has("NVTX_INJECTION64_PATH") ? device::make_nvtx_ranges() : nullptr;
}

/// A start that knows its ranks: it chooses the interval of its saves for them, and each rank shows
/// its steps to its node's endpoint, where there is one.
train::StartOptions on_ranks(train::StartOptions start, const config::Config& config,
                             const runtime::Session& session) {
  start.choose_interval = interval_chooser(config, session.cluster.mesh.world_size(),
                                           session.cluster.mpi->node_count());
  if (config.options().track.prometheus_port == 0) return start;
  start.on_step = [mpi = session.cluster.mpi](const train::StepRecord& record) {
    mpi->publish(published(record));
  };
  return start;
}

/// Starts the ranks and, where they fail, leaves in the run what only their parent knows.
base::ExitCode lead_ranks(int ranks, const std::filesystem::path& run, const Context& context) {
  const auto began = std::chrono::system_clock::now();
  const auto end = start_ranks(ranks, without_ranks_option(context.arguments), context.environment);
  const bool in_order = end.code == base::ExitCode::done || end.code == base::ExitCode::requeue;
  if (in_order) return end.code;
  if (end.signal != 0) {
    const auto signal = "signal " + record::signal_text(end.signal);
    record::note_end_of_task(run, signal, began);
    base::log::local::error("train", "a rank was ended by {}; see trireme why {}", signal,
                            base::shell_word(run.string()));
  }
  write_report_of_failure(run);
  return end.code;
}

/// Trains on this rank, which a launcher has started.
base::ExitCode train_on_this_rank(ConfigArguments& arguments, train::Start how, Context& context) {
  // Signals are caught from here on: one that arrives while MPI starts must not be lost.
  const train::StopSignal signal;
  const auto given = base::value_or_throw(arguments.resolve(context.environment));
  const auto chosen = base::value_or_throw(with_chosen_layout(given, context.environment));
  const auto& config = chosen.config;
  // Order: before MPI starts, because it runs squeue as a child process.
  const train::StartOptions start{.start = how,
                                  .limit = runtime::TimeLimit(context.environment),
                                  .tool_version = tool_version(),
                                  .predict = predictor_of(config)};
  // Costs less than the start of MPI, and is the same on all ranks.
  base::success_or_throw(check_model_and_layout(config));
  auto options = session_options(config);
  options.run_directory = config::run_directory(config);
  trackers_of(config.options().track);
  // Ended after the session: a failure ends all ranks without waiting for trackers.
  std::unique_ptr<track::Live> trackers;
  const auto code =
      runtime::Session::start(options, context.environment, [&](runtime::Session& session) {
        const bool is_first = session.cluster.rank.value() == 0;
        if (!chosen.sentence.empty()) base::log::info("train", "{}", chosen.sentence);
        const auto ranges = nvtx_ranges(context.environment);
        const telemetry::ObservedSpans observed(ranges.get());
        // Outside of what announces: their threads may wait for a file system.
        std::unique_ptr<train::Trainer> trainer;
        NodeAnswers answers;
        const auto end = session.cluster.mpi->announcing([&] {
          trainer = std::make_unique<train::Trainer>(with_absolute_targets(config), session,
                                                     on_ranks(start, config, session));
          answers = answer_prometheus(config, session.cluster);
          const auto placement = runtime::gather_placement(session.cluster);
          if (is_first) {
            write_versions(options.run_directory, config);
            base::write_file_durably(record::placement_of_run(options.run_directory),
                                     base::json_text(record::to_json(placement)) + "\n");
            trackers = start_tracking(config, context.environment);
          }
          trainer->comment_job(context.environment);
          return trainer->run();
        });
        // The run is given back first: its page says that it has ended.
        trainer.reset();
        if (is_first) write_own_report(options.run_directory);
        return end;
      });
  if (trackers) trackers->finish();
  return code;
}

Action prepare_train(CLI::App& app) {
  auto arguments = ConfigArguments::add_to(app);
  auto fresh = std::make_shared<bool>(false);
  auto* const anew =
      app.add_flag("--fresh", *fresh, "Start anew; refuses a run directory that is not empty");
  arguments->add_resume(app)->excludes(anew);
  auto ranks = std::make_shared<int>(0);
  add_ranks(app, *ranks, "Starts so many ranks on this node by itself, with mpirun", nullptr,
            most_local_ranks);
  return [arguments, fresh, ranks](Context& context) {
    arguments->resume_named_run(context.environment);
    arguments->chooses_layout = true;
    if (*ranks > 0) {
      base::success_or_throw(may_start_ranks(*ranks, context.environment));
      // Checked here, so that a mistake is reported once, and not by every rank.
      const auto given = base::value_or_throw(arguments->resolve(context.environment));
      const auto chosen = base::value_or_throw(with_chosen_layout(given, *ranks));
      check_start(chosen.config, *ranks);
      return lead_ranks(*ranks, config::run_directory(chosen.config), context);
    }
    return train_on_this_rank(*arguments, *fresh ? train::Start::fresh : train::Start::resume,
                              context);
  };
}

}  // namespace

Command train_command() {
  return {.name = "train",
          .summary = "Trains a model; continues by itself from the newest step of its run",
          .group = "Training",
          .details =
              "Start it on every rank: mpirun -n 4 trireme train configs/quickstart.conf, "
              "or srun --mpi=pmix; on one node, --ranks 4 starts four by itself. --resume RUN goes "
              "on with a "
              "run from any folder, and needs no configuration. SIGTERM, SIGUSR1 "
              "and the nearing time limit of a Slurm "
              "job save and end with exit code 75; a file STOP in the run directory saves and "
              "ends with 0.",
          .prepare = prepare_train};
}

}  // namespace trireme::apps
