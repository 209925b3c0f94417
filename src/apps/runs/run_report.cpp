// SPDX-License-Identifier: Apache-2.0
#include "apps/runs/run_report.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/base/shell_word.hpp"
#include "trireme/report/page.hpp"

#include "apps/runs/checkpoints_in.hpp"
#include "apps/runs/output_forms.hpp"
#include "apps/version.hpp"

namespace trireme::apps {
namespace {

/// Some hundred thousand steps, which take about a second.
constexpr std::uintmax_t largest_record = std::uintmax_t{64} << 20;

/// A failed run of a Slurm job with what Slurm says of the job, as `trireme why` has it.
void ask_slurm(report::RunView& run) {
  if (run.state != report::State::failed || run.postmortem.job.empty()) return;
  auto asked = postmortem::examine(
      run.path, {{}, postmortem::ask_slurm(run.postmortem.job), &run.record, checkpoints_in});
  if (asked.ok()) run.postmortem = std::move(asked).value();
}

std::vector<report::RunView> read(std::span<const std::filesystem::path> runs) {
  auto views = base::value_or_throw(report::read_runs(runs, checkpoints_in));
  for (auto& run : views) ask_slurm(run);
  return views;
}

report::PageOrigin origin() {
  return {tool_version(), postmortem::utc_text(now_ms()).substr(0, 19) + " UTC"};
}

}  // namespace

void write_report(std::span<const std::filesystem::path> runs, const std::filesystem::path& out) {
  base::write_file_durably(out, report::page(read(runs), origin()));
}

std::string report_json(std::span<const std::filesystem::path> runs) {
  return json_line(report::page_json(read(runs), origin()));
}

void write_own_report(const std::filesystem::path& run) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(telemetry::record_of_run(run), error);
  if (error || bytes > largest_record) {
    base::log::info("report", "the run's record has {}; trireme report {} makes its page",
                    base::bytes_text(error ? 0 : bytes), base::shell_word(run.string()));
    return;
  }
  try {
    write_report({&run, 1}, run / report_file_name);
  } catch (const std::exception& failure) {
    base::log::warning("report",
                       "{} (the run has ended without a page); make room, and write it with "
                       "trireme report {}",
                       failure.what(), base::shell_word(run.string()));
  }
}

void write_report_of_failure(const std::filesystem::path& run) {
  if (!postmortem::is_run(run)) return;
  telemetry::RecordReader record(telemetry::record_of_run(run), telemetry::RecordReader::From::end);
  if (!record.advance().ok()) return;
  if (report::state_of(run, record.record()) == report::State::failed) write_own_report(run);
}

}  // namespace trireme::apps
