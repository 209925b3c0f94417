// SPDX-License-Identifier: Apache-2.0
#include "trireme/runtime/start_up.hpp"

#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"

#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <ctime>
#include <optional>

namespace trireme::runtime {
namespace {

/// Seconds since the system started this process, from proc(5).
std::optional<double> process_age() {
  const auto stat = base::read_text_file("/proc/self/stat");
  if (!stat.ok()) return std::nullopt;
  // The 22nd field, in clock ticks since the system's start; the name may hold spaces.
  std::string_view rest = *stat;
  rest.remove_prefix(std::min(rest.size(), rest.rfind(')')));
  for (int field = 2; field < 22 && !rest.empty(); ++field) {
    rest.remove_prefix(std::min(rest.size(), rest.find(' ') + 1));
  }
  std::uint64_t ticks = 0;
  const auto parsed = std::from_chars(rest.data(), rest.data() + rest.size(), ticks);
  timespec now{};
  if (parsed.ec != std::errc{} || ::clock_gettime(CLOCK_BOOTTIME, &now) != 0) return std::nullopt;
  const double since_boot =
      static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
  const double age =
      since_boot - static_cast<double>(ticks) / static_cast<double>(::sysconf(_SC_CLK_TCK));
  return age >= 0 ? std::optional(age) : std::nullopt;
}

}  // namespace

StartUp::StartUp() : last_(Clock::now()) {
  const std::chrono::duration<double> age(process_age().value_or(0));
  last_ -= std::chrono::duration_cast<Clock::duration>(age);
}

void StartUp::reached(std::string_view phase) {
  const auto now = Clock::now();
  const std::chrono::duration<double> took = now - last_;
  phases_.push_back({std::string(phase), took.count()});
  last_ = now;
}

void StartUp::reached(std::string_view before, std::string_view phase, double seconds) {
  reached(before);
  phases_.back().seconds = std::max(phases_.back().seconds - seconds, 0.0);
  phases_.push_back({std::string(phase), seconds});
}

std::vector<StartUp::Phase> StartUp::slowest(comm::ProcessGroup& world) const {
  auto phases = phases_;
  Phase sum{"all", 0};
  for (const auto& phase : phases) sum.seconds += phase.seconds;
  phases.push_back(sum);
  std::vector<float> seconds;
  for (const auto& phase : phases) seconds.push_back(static_cast<float>(phase.seconds));
  world.all_reduce(device::Tensor(seconds.data(), device::DType::f32,
                                  {static_cast<std::int64_t>(seconds.size())}),
                   comm::ReduceOp::max);
  for (std::size_t i = 0; i < phases.size(); ++i) phases[i].seconds = double{seconds[i]};
  return phases;
}

std::string text(const std::vector<StartUp::Phase>& phases) {
  constexpr std::size_t most_parts = 3;
  if (phases.empty()) return {};
  auto longest = phases;
  longest.pop_back();
  std::stable_sort(longest.begin(), longest.end(),
                   [](const auto& one, const auto& other) { return one.seconds > other.seconds; });
  longest.resize(std::min(longest.size(), most_parts));
  std::vector<std::string> parts;
  for (const auto& phase : longest) {
    parts.push_back(base::format("{} {:.3f}", phase.name, phase.seconds));
  }
  return base::format("{:.3f} s, most of it {}", phases.back().seconds, base::join(parts, ", "));
}

}  // namespace trireme::runtime
