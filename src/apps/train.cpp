// trireme train: argv to Trainer. Next: src/train/launch.cpp, src/train/trainer.cpp.
#include "trireme/base/error.hpp"
#include "trireme/runtime/time_limit.hpp"
#include "trireme/train/launch.hpp"
#include "trireme/train/stop_signal.hpp"
#include "trireme/train/trainer.hpp"

#include "apps/commands.hpp"
#include "apps/config_arguments.hpp"
#include "apps/version.hpp"

namespace trireme::apps {
namespace {

Action prepare_train(CLI::App& app) {
  auto arguments = ConfigArguments::add_to(app);
  auto fresh = std::make_shared<bool>(false);
  app.add_flag("--fresh", *fresh, "Start anew; refuses a run directory that is not empty");
  return [arguments, fresh](Context& context) {
    // From here on: a signal that lands while MPI starts must not be lost.
    const train::StopSignal signal;
    const auto config = base::value_or_throw(arguments->resolve(context.environment));
    const train::Failures failures{config::run_directory(config)};
    // Before MPI starts: it asks Slurm in a process of its own.
    const train::StartOptions start{.start = *fresh ? train::Start::fresh : train::Start::resume,
                                    .limit = runtime::TimeLimit(context.environment),
                                    .tool_version = tool_version()};
    return train::run_on_mesh(config, context.environment, failures, [&](train::Session& session) {
      train::Trainer trainer(config, session, start);
      if (session.cluster.rank.value() == 0) write_versions(failures.run_directory, config);
      trainer.comment_job(context.environment);
      return trainer.run();
    });
  };
}

}  // namespace

Command train_command() {
  return {.name = "train",
          .summary = "Trains a model; continues by itself from the newest step of its run",
          .group = "Training",
          .details =
              "Start it on every rank: mpirun -n 4 trireme train configs/quickstart.conf, "
              "or srun --mpi=pmix. SIGTERM, SIGUSR1 and the nearing time limit of a Slurm "
              "job save and end with exit code 75; a file STOP in the run directory saves and "
              "ends with 0.",
          .prepare = prepare_train};
}

}  // namespace trireme::apps
