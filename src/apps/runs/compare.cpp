// SPDX-License-Identifier: Apache-2.0
// trireme compare
#include "trireme/base/error.hpp"
#include "trireme/report/comparison.hpp"

#include "apps/cli/commands.hpp"
#include "apps/runs/output_forms.hpp"

#include <memory>

namespace trireme::apps {
namespace {

struct CompareOptions {
  std::vector<std::filesystem::path> runs;
  bool json = false;
};

Action prepare_compare(CLI::App& app) {
  auto options = std::make_shared<CompareOptions>();
  app.add_option("RUN", options->runs, "Run directories")->required()->type_name("PATH...");
  app.add_flag("--json", options->json, "One JSON object");
  return [options](Context& context) {
    const auto runs = base::value_or_throw(report::read_runs(options->runs));
    context.out.write(options->json ? json_line(report::comparison_json(runs))
                                    : report::comparison_text(runs, terminal_width()));
    return base::ExitCode::done;
  };
}

}  // namespace

Command compare_command() {
  return {.name = "compare",
          .summary = "Compares runs: losses, speed, and the keys in which they differ",
          .group = "Explanations",
          .details =
              "Of each run the training loss is a mean over the last 50 steps, tok/s and MFU are "
              "medians of the newest start without its first steps. Steps that a later start has "
              "made again count once. Keys are compared as each run has recorded them, with their "
              "origin; trireme config diff compares configuration files.",
          .prepare = prepare_compare};
}

}  // namespace trireme::apps
