// SPDX-License-Identifier: Apache-2.0
// trireme eval
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/inference/evaluate.hpp"
#include "trireme/runtime/session.hpp"
#include "trireme/schema/quoted.hpp"

#include "apps/cli/commands.hpp"
#include "apps/cli/config_arguments.hpp"
#include "apps/session_options.hpp"

#include <algorithm>
#include <iterator>
#include <memory>

namespace trireme::apps {
namespace {

struct EvalOptions {
  std::string weights;
  std::vector<std::string> data;
  bool json = false;
};

Action prepare_eval(CLI::App& app) {
  auto arguments = ConfigArguments::add_to(app);
  auto options = std::make_shared<EvalOptions>();
  app.add_option("--weights", options->weights,
                 "Checkpoint step, run directory (its newest step) or Hugging Face folder "
                 "(default: the configuration's own run)")
      ->type_name("PATH");
  app.add_option("--data", options->data,
                 "Held-out token files, in place of data.validation; may be repeated")
      ->type_name("PREFIX")
      ->allow_extra_args(false);
  app.add_flag("--json", options->json, "One JSON object");
  return [arguments, options](Context& context) {
    auto resolved = *arguments;
    if (!options->data.empty()) {
      std::vector<std::string> entries;
      std::transform(options->data.begin(), options->data.end(), std::back_inserter(entries),
                     schema::quoted);
      resolved.settings.push_back(base::format("data.validation={}", base::join(entries, ", ")));
    }
    const auto config = base::value_or_throw(resolved.resolve(context.environment));
    return runtime::Session::start(
        session_options(config), context.environment, [&](runtime::Session& session) {
          const auto evaluation = inference::evaluate_weights(options->weights, config, session);
          if (session.cluster.rank.value() == 0) {
            context.out.write(options->json ? base::json_text(inference::to_json(evaluation)) + "\n"
                                            : inference::text(evaluation));
            context.out.flush();
          }
          return base::ExitCode::done;
        });
  };
}

}  // namespace

Command eval_command() {
  return {
      .name = "eval",
      .summary = "Says how well a model foretells held-out tokens",
      .group = "Training",
      .details =
          "Mean loss of a token in nats, perplexity, and bits per byte of text where a "
          "tokenizer is known (data.tokenizer, or the one that the weights came with). Every "
          "sample of train.sequence_length tokens is counted once, in their order. What nobody "
          "gives of train.sequence_length, train.micro_batch, numerics.precision and "
          "data.validation is as the run had it. Alone, or on every rank under mpirun or srun.\n"
          "Example: mpirun -n 4 trireme eval configs/quickstart.conf --json",
      .prepare = prepare_eval};
}

}  // namespace trireme::apps
