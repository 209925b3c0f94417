// SPDX-License-Identifier: Apache-2.0
// trireme report
#include "trireme/base/error.hpp"
#include "trireme/base/log.hpp"

#include "apps/cli/commands.hpp"
#include "apps/runs/run_report.hpp"

#include <memory>

namespace trireme::apps {
namespace {

struct ReportOptions {
  std::vector<std::filesystem::path> runs;
  std::filesystem::path out;
  bool json = false;
};

Action prepare_report(CLI::App& app) {
  auto options = std::make_shared<ReportOptions>();
  app.add_option("RUN", options->runs, "Run directories")->required()->type_name("PATH...");
  auto* out = app.add_option("--out", options->out,
                             "The page's file; of one run RUN/report.html if it is not given")
                  ->type_name("FILE");
  app.add_flag("--json", options->json,
               "Prints the page's figures and findings as one JSON object, and writes no page")
      ->excludes(out);
  return [options](Context& context) {
    if (options->json) {
      context.out.write(report_json(options->runs));
      return base::ExitCode::done;
    }
    if (options->out.empty() && options->runs.size() > 1) {
      throw base::Error(base::ExitCode::usage,
                        "a report of several runs belongs to none of their folders; name its file "
                        "with --out FILE.html");
    }
    const auto path =
        options->out.empty() ? options->runs.front() / report_file_name : options->out;
    write_report(options->runs, path);
    context.out.write(path.string() + "\n");
    return base::ExitCode::done;
  };
}

}  // namespace

Command report_command() {
  return {.name = "report",
          .summary = "Writes a page with a run's curves, times, findings, failures, configuration",
          .group = "Explanations",
          .details =
              "One HTML file that needs nothing else, of one run or of several over each other, "
              "also while they run; a run that ends in good order writes its own. Prints the "
              "file's path. docs/reports.md says what the page shows and by which rules it finds "
              "what holds a run back.\n"
              "Example: trireme report runs/a runs/b --out a-and-b.html",
          .prepare = prepare_report};
}

}  // namespace trireme::apps
