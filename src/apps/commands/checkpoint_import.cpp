// SPDX-License-Identifier: Apache-2.0
// trireme checkpoint import
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/huggingface/import.hpp"
#include "trireme/runtime/session.hpp"

#include "apps/cli/commands.hpp"
#include "apps/session_options.hpp"
#include "apps/version.hpp"

#include <memory>

namespace trireme::apps {
namespace {

struct ImportOptions {
  std::string folder;
  std::string run;
};

Action prepare_import(CLI::App& app) {
  auto options = std::make_shared<ImportOptions>();
  app.add_option("HF_DIR", options->folder,
                 "Hugging Face folder: config.json and safetensors, sharded or not")
      ->required();
  app.add_option("--to", options->run, "Run folder to write; it must have no checkpoints yet")
      ->type_name("DIR")
      ->required();
  return [options](Context& context) {
    const auto config = base::value_or_throw(
        config::Config::resolve({.files = {}, .environment = context.environment, .settings = {}}));
    return runtime::Session::start(
        session_options(config), context.environment, [&](runtime::Session& session) {
          const auto step = huggingface::import_folder({.folder = options->folder,
                                                        .run = options->run,
                                                        .tool_version = tool_version(),
                                                        .job = session.cluster.identity.job},
                                                       *session.cluster.world);
          if (session.cluster.rank.value() == 0) {
            context.out.write(base::format("wrote {}\n", step.string()));
            context.out.flush();
          }
          return base::ExitCode::done;
        });
  };
}

}  // namespace

Command checkpoint_import_command() {
  return {.name = "import",
          .summary = "Makes a run of the weights of a Hugging Face folder",
          .details =
              "Writes DIR/checkpoints/step-000000000 without optimizer state, which train "
              "(run.directory=DIR or checkpoint.load=DIR), eval, probe and export take at "
              "any layout; values keep their bits. What the folder says of its model, its "
              "tokenizer.json and their settings are copied to DIR, which needs the folder no "
              "more. Under "
              "mpirun or srun each rank reads and writes its share.",
          .prepare = prepare_import};
}

}  // namespace trireme::apps
