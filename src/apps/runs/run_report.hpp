// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace trireme::apps {

inline constexpr std::string_view report_file_name = "report.html";

/// Writes the page of these runs; readers see the old one or the new one, whole. Throws Error.
void write_report(std::span<const std::filesystem::path> runs, const std::filesystem::path& out);

/// The figures and findings of their page, as one JSON object. Throws Error.
std::string report_json(std::span<const std::filesystem::path> runs);

/// RUN/report.html at the end of a run. A failure is logged, and so are records that would take
/// long to read: the run has ended as it has, whatever becomes of its page.
void write_own_report(const std::filesystem::path& run);

/// The same for a run whose ranks have failed, by the process that has started them; nothing if the
/// folder is no run, another start holds it, or what failed has left no trace in it.
void write_report_of_failure(const std::filesystem::path& run);

}  // namespace trireme::apps
