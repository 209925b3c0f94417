// SPDX-License-Identifier: Apache-2.0
// trireme probe
#include "trireme/inference/probe.hpp"

#include "trireme/base/error.hpp"
#include "trireme/runtime/session.hpp"

#include "apps/cli/commands.hpp"
#include "apps/cli/config_arguments.hpp"
#include "apps/session_options.hpp"

namespace trireme::apps {
namespace {

Action prepare_probe(CLI::App& app) {
  auto arguments = ConfigArguments::add_to(app);
  auto request = std::make_shared<inference::ProbeRequest>();
  app.add_option("--weights", request->weights,
                 "Checkpoint step, run directory (its newest step) or Hugging Face folder")
      ->type_name("PATH")
      ->required();
  app.add_option("--tokens", request->tokens, "JSON: a list of equally long lists of token ids")
      ->type_name("FILE")
      ->required();
  app.add_option("--out", request->out, "The safetensors file to write")
      ->type_name("FILE")
      ->required();
  app.add_flag("--gradients", request->with_gradients,
               "Also writes the gradient of the loss for every parameter");
  arguments->add_shortcut(app, "--backend", "numerics.backend", "What computes")
      ->type_name("reference|cpu|cuda");
  return [arguments, request](Context& context) {
    const auto config = base::value_or_throw(arguments->resolve(context.environment));
    return runtime::Session::start(session_options(config), context.environment,
                                   [&](runtime::Session& session) {
                                     inference::probe(*request, config, session);
                                     return base::ExitCode::done;
                                   });
  };
}

}  // namespace

Command probe_command() {
  return {.name = "probe",
          .summary = "Writes logits, loss and gradients of a model, to compare with other software",
          .group = "Inference",
          .details =
              "The file holds 'logits' [batch, seq, vocab], 'loss' [1] (mean cross-entropy "
              "of each next token) and, with --gradients, 'grad/NAME' for every parameter "
              "under its Hugging Face name and in Hugging Face's orientation, all fp32. "
              "Under mpirun or srun any layout writes the same file.",
          .prepare = prepare_probe};
}

}  // namespace trireme::apps
