// SPDX-License-Identifier: Apache-2.0
#include "apps/machine_comparison.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/json_text.hpp"

namespace trireme::apps {

void add_comparison(CLI::App& app, plan::ComparisonRequest& request) {
  auto* const compare = app.add_option("--compare", request.machines,
                                       "Machine files, comma between them: where a run is best, "
                                       "in the best layout of each");
  compare->type_name("FILE,...")->delimiter(',')->excludes("--search", "--machine", "--rank");
  app.add_option("--data", request.data,
                 "Only machines whose site.allows has this word, for data that may not be anywhere")
      ->type_name("TAG")
      ->needs(compare);
  app.add_flag("--spot", request.includes_spot,
               "Nodes that may be taken away, too, where a machine file says how often")
      ->needs(compare);
}

std::string compared(const config::Config& config, const model::ModelConfig& model,
                     const plan::ComparisonRequest& request, bool json) {
  if (request.ranks == 0 && request.nodes == 0) {
    throw base::Error(base::usage_failure(
        "--compare needs a size (each machine gets as much); give --nodes, or --ranks"));
  }
  if (request.objective == plan::Objective::gpus) {
    throw base::Error(base::usage_failure(
        "--objective gpus does not go with --compare (a GPU of one machine is none of another); "
        "use time, cost or carbon"));
  }
  const auto machines = base::value_or_throw(plan::compare_machines(config, model, request));
  return json ? base::json_text(plan::to_json(machines), 2) + "\n" : plan::text(machines, request);
}

}  // namespace trireme::apps
