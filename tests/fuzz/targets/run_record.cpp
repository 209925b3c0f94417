// SPDX-License-Identifier: Apache-2.0
// Lines of metrics.jsonl and of config.resolved.conf, which lists, comparisons and pages read.
#include "trireme/telemetry/run_record.hpp"

#include "trireme/config/resolved_text.hpp"

#include "input.hpp"
#include "report/page/html.hpp"

#include <algorithm>

using namespace trireme;

namespace {

template <typename Lines>
bool ascends(const Lines& lines) {
  const auto not_below = [](const auto& one, const auto& other) { return one.step >= other.step; };
  return std::adjacent_find(lines.begin(), lines.end(), not_below) == lines.end();
}

bool is_text(const std::string& text) {
  return text.find_first_of("<>\"'") == std::string::npos &&
         std::none_of(text.begin(), text.end(), [](char letter) {
           return static_cast<unsigned char>(letter) < 0x20 && letter != '\n';
         });
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto text = fuzz::text_of(data, size);
  telemetry::RunRecord record;
  for (const auto& line : fuzz::lines_of(text)) {
    record.take(line);
    fuzz::must(ascends(record.steps), "each step is there once, in order");
    fuzz::must(ascends(record.evaluations), "each evaluation is there once, in order");
  }
  fuzz::must(record.start_count >= 0 && record.repeated_steps >= 0, "counts are counts");
  for (const auto& value : config::recorded_values(text)) {
    fuzz::must(value.key.find('.') != std::string::npos, "a key has a section");
    fuzz::must(value.text.find('\n') == std::string::npos, "a value is on one line");
  }
  fuzz::must(is_text(report::escaped(text)), "what is escaped is no markup");
  return 0;
}
