// SPDX-License-Identifier: Apache-2.0
#include "trireme/config/step_range.hpp"

#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/number.hpp"
#include "trireme/base/text.hpp"

#include <algorithm>
#include <optional>

namespace trireme::config {
namespace {

std::optional<std::int64_t> step_of(std::string_view text) {
  const auto step = base::number_in<std::int64_t>(base::trimmed(text));
  return step && *step >= 1 ? step : std::nullopt;
}

}  // namespace

std::string StepRange::text() const {
  return first == last ? base::format("{}", first) : base::format("{}..{}", first, last);
}

std::int32_t read_profile_request(const std::filesystem::path& file) {
  constexpr std::size_t most_bytes = 64;
  const auto text = base::read_text_file(file, base::ExitCode::usage, most_bytes);
  const auto count = text ? step_of(*text) : std::nullopt;
  return static_cast<std::int32_t>(std::min(count.value_or(0), StepRange::most_steps));
}

base::Result<StepRange> parse_step_range(std::string_view text) {
  constexpr std::string_view dots = "..";
  const auto at = text.find(dots);
  const auto first = step_of(text.substr(0, at));
  const auto last = at == std::string_view::npos ? first : step_of(text.substr(at + dots.size()));
  if (!first || !last) {
    return base::usage_failure(
        "is no range of steps (they count from 1); write the first and the last, such as 100..102");
  }
  if (*last < *first) {
    return base::usage_failure(base::format("ends before it begins; write {}..{}", *last, *first));
  }
  if (*last - *first >= StepRange::most_steps) {
    return base::usage_failure(
        base::format("is {} steps (readers of traces hold all of them in memory); give at most {}",
                     *last - *first + 1, StepRange::most_steps));
  }
  return StepRange{*first, *last};
}

}  // namespace trireme::config
