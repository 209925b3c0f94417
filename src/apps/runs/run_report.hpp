// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <span>
#include <string_view>

namespace trireme::apps {

inline constexpr std::string_view report_file_name = "report.html";

/// Writes the page of these runs; readers see the old one or the new one, whole. Throws Error.
void write_report(std::span<const std::filesystem::path> runs, const std::filesystem::path& out);

/// RUN/report.html at the end of a run. A failure is logged, and so are records that would take
/// long to read: the run has ended well whatever becomes of its page.
void write_own_report(const std::filesystem::path& run);

}  // namespace trireme::apps
