// SPDX-License-Identifier: Apache-2.0
#include "apps/runs/run_report.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/report/page.hpp"

#include "apps/runs/output_forms.hpp"
#include "apps/version.hpp"

namespace trireme::apps {
namespace {

/// Some hundred thousand steps, which take about a second.
constexpr std::uintmax_t largest_record = std::uintmax_t{64} << 20;

}  // namespace

void write_report(std::span<const std::filesystem::path> runs, const std::filesystem::path& out) {
  const auto read = base::value_or_throw(report::read_runs(runs));
  const auto time = postmortem::utc_text(now_ms()).substr(0, 19) + " UTC";
  base::write_file_durably(out, report::page(read, {tool_version(), time}));
}

void write_own_report(const std::filesystem::path& run) {
  std::error_code error;
  const auto bytes = std::filesystem::file_size(telemetry::record_of_run(run), error);
  if (error || bytes > largest_record) {
    base::log::info("report", "the run's record has {}; trireme report {} makes its page",
                    base::bytes_text(error ? 0 : bytes), run.string());
    return;
  }
  try {
    write_report({&run, 1}, run / report_file_name);
  } catch (const std::exception& failure) {
    base::log::warning("report",
                       "{} (the run has ended well, but without a page); make room, and "
                       "write it with trireme report {}",
                       failure.what(), run.string());
  }
}

}  // namespace trireme::apps
