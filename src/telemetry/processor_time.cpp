// SPDX-License-Identifier: Apache-2.0
#include "trireme/telemetry/processor_time.hpp"

#include "trireme/base/file.hpp"
#include "trireme/base/number.hpp"
#include "trireme/base/text.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <ctime>

namespace trireme::telemetry {
namespace {

namespace fs = std::filesystem;

/// More cores than a node has.
constexpr int most_cores = 1 << 12;
/// Parts of the whole, a thousand: fits ten bits.
constexpr double parts_of_share = 1000;
constexpr std::size_t largest_file = std::size_t{4} << 20;

std::string text_of(const fs::path& path) {
  auto text = base::read_text_file(path, base::ExitCode::usage, largest_file);
  return text.ok() ? std::move(text).value() : std::string{};
}

double difference(std::uint64_t later, std::uint64_t earlier) {
  // Some kernels let these counters fall by a few ticks.
  return later > earlier ? static_cast<double>(later - earlier) : 0;
}

}  // namespace

std::map<int, CoreTicks> core_ticks_in(std::string_view proc_stat) {
  std::map<int, CoreTicks> cores;
  for (const auto line : base::split(proc_stat, '\n')) {
    const auto words = base::split(line, ' ');
    if (words.empty() || !words[0].starts_with("cpu")) continue;
    const auto core = base::number_in<int>(words[0].substr(3));
    // The sum of all has no number.
    if (!core || *core < 0 || *core >= most_cores) continue;
    // user, nice, system, idle, waiting, interrupts, soft interrupts, stolen. Guests are in user.
    std::array<std::uint64_t, 8> ticks{};
    for (std::size_t at = 0; at < std::min(ticks.size(), words.size() - 1); ++at) {
      ticks[at] = base::number_in<std::uint64_t>(words[at + 1]).value_or(0);
    }
    cores[*core] = {ticks[0] + ticks[1] + ticks[2], ticks[5] + ticks[6], ticks[7],
                    ticks[3] + ticks[4]};
  }
  return cores;
}

std::vector<int> core_numbers(std::string_view list) {
  std::vector<int> numbers;
  for (const auto part : base::split(base::trimmed(list), ',')) {
    const auto dash = part.find('-');
    const auto first = base::number_in<int>(part.substr(0, dash));
    const auto last =
        dash == std::string_view::npos ? first : base::number_in<int>(part.substr(dash + 1));
    if (!first || !last || *first < 0 || *last < *first || *last >= most_cores) return {};
    for (int number = *first; number <= *last; ++number) numbers.push_back(number);
  }
  std::sort(numbers.begin(), numbers.end());
  numbers.erase(std::unique(numbers.begin(), numbers.end()), numbers.end());
  return numbers;
}

std::vector<fs::path> limit_files_in(std::string_view cgroups) {
  std::vector<fs::path> files;
  for (const auto line : base::split(cgroups, '\n')) {
    // NUMBER:CONTROLLERS:PATH; the second version has no controllers here.
    const auto begin = line.find(':');
    const auto end = begin == std::string_view::npos ? begin : line.find(':', begin + 1);
    if (end == std::string_view::npos) continue;
    const auto controllers = line.substr(begin + 1, end - begin - 1);
    const auto names = base::split(controllers, ',');
    const bool is_second = controllers.empty();
    if (!is_second && std::find(names.begin(), names.end(), "cpu") == names.end()) continue;
    const auto root = fs::path("/sys/fs/cgroup") / (is_second ? "" : "cpu");
    // A namespace may show groups outside of it by "..".
    const auto inner = fs::path(line.substr(end + 1)).lexically_normal().relative_path();
    auto group = (root / inner).lexically_normal();
    for (;; group = group.parent_path()) {
      files.push_back(group / "cpu.stat");
      if (group.string().size() <= root.string().size()) break;
    }
  }
  return files;
}

std::optional<std::chrono::microseconds> throttled_in(std::string_view cpu_stat) {
  std::optional<std::chrono::microseconds> throttled;
  bool is_limited = false;
  for (const auto line : base::split(cpu_stat, '\n')) {
    const auto words = base::split(line, ' ');
    if (words.size() != 2) continue;
    const auto number = base::number_in<std::int64_t>(words[1]);
    if (!number) continue;
    // Periods are counted under a limit alone.
    if (words[0] == "nr_periods") is_limited = *number > 0;
    if (words[0] == "throttled_usec") throttled = std::chrono::microseconds(*number);
    if (words[0] == "throttled_time") throttled = std::chrono::microseconds(*number / 1000);
  }
  return is_limited ? throttled : std::nullopt;
}

ProcessorCounters ProcessorMeter::read() const {
  ProcessorCounters counters{std::chrono::steady_clock::now()};
  timespec own{};
  if (::clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own) == 0) {
    counters.own_seconds = static_cast<double>(own.tv_sec) + static_cast<double>(own.tv_nsec) / 1e9;
  }
  if (reads_ == Reads::own) return counters;
  counters.cores = core_ticks_in(text_of("/proc/stat"));
  for (const auto& file : limits_) {
    if (const auto throttled = throttled_in(text_of(file))) counters.throttled[file] = *throttled;
  }
  return counters;
}

namespace {

double seconds_between(const ProcessorCounters& earlier, const ProcessorCounters& later) {
  return std::chrono::duration<double>(later.time - earlier.time).count();
}

/// Seconds of cores.
double throttled_between(const ProcessorCounters& earlier, const ProcessorCounters& later) {
  std::chrono::duration<double> most{0};
  for (const auto& [file, throttled] : later.throttled) {
    const auto found = earlier.throttled.find(file);
    // A limit that is new began to count from nothing.
    const auto before =
        found == earlier.throttled.end() ? std::chrono::microseconds{0} : found->second;
    most = std::max<std::chrono::duration<double>>(most, throttled - before);
  }
  return most.count();
}

}  // namespace

ProcessorShares shares_between(const ProcessorCounters& earlier, const ProcessorCounters& later) {
  const double seconds = seconds_between(earlier, later);
  ProcessorShares shares{seconds, (later.own_seconds - earlier.own_seconds) / seconds};
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK)) * seconds;
  for (const auto& [core, now] : later.cores) {
    const auto found = earlier.cores.find(core);
    if (found == earlier.cores.end()) continue;
    const auto& before = found->second;
    const double busy = difference(now.busy, before.busy);
    const double stolen = difference(now.stolen, before.stolen);
    const double interrupts = difference(now.interrupts, before.interrupts);
    // A sandbox may show a core that counts nothing at all.
    if (busy + stolen + interrupts + difference(now.idle, before.idle) == 0) continue;
    shares.cores[core] = {std::min(1.0, busy / ticks), std::min(1.0, stolen / ticks),
                          std::min(1.0, interrupts / ticks)};
  }
  shares.throttled = throttled_between(earlier, later) / seconds;
  return shares;
}

void ProcessorMeter::begin() {
  if (reads_ == Reads::node_too) {
    limits_ = limit_files_in(text_of("/proc/self/cgroup"));
    std::erase_if(limits_, [](const fs::path& file) { return text_of(file).empty(); });
  }
  begin_ = read();
}

std::optional<ProcessorShares> ProcessorMeter::take() {
  constexpr double shortest_seconds = 1;
  if (!begin_) return std::nullopt;
  auto now = read();
  if (seconds_between(*begin_, now) < shortest_seconds) return std::nullopt;
  auto shares = shares_between(*begin_, now);
  begin_ = std::move(now);
  return shares;
}

namespace {

std::uint32_t parts(double share) {
  return static_cast<std::uint32_t>(std::lround(std::clamp(share, 0.0, 1.0) * parts_of_share));
}
double share(std::uint32_t parts) {
  return parts / parts_of_share;
}

}  // namespace

std::string packed(const ProcessorShares& shares) {
  constexpr double most = 4e9;
  std::vector<std::uint32_t> words{
      static_cast<std::uint32_t>(std::clamp(shares.seconds * 1e3, 0.0, most)),
      static_cast<std::uint32_t>(std::clamp(shares.own * 1e3, 0.0, most)),
      static_cast<std::uint32_t>(std::clamp(shares.throttled * 1e3, 0.0, most))};
  for (const auto& [core, each] : shares.cores) {
    words.push_back(static_cast<std::uint32_t>(core));
    words.push_back(parts(each.busy) << 20U | parts(each.stolen) << 10U | parts(each.interrupts));
  }
  return {reinterpret_cast<const char*>(words.data()), words.size() * sizeof words[0]};
}

ProcessorShares unpacked(std::string_view bytes) {
  constexpr std::size_t head = 3;
  constexpr std::size_t words_of_core = 2;
  constexpr std::uint32_t ten_bits = 0x3FF;
  std::vector<std::uint32_t> words(bytes.size() / sizeof(std::uint32_t));
  const bool is_whole = bytes.size() % sizeof words[0] == 0 && words.size() >= head &&
                        (words.size() - head) % words_of_core == 0;
  if (!is_whole) return {};
  std::memcpy(words.data(), bytes.data(), bytes.size());
  ProcessorShares shares{words[0] / 1e3, words[1] / 1e3};
  shares.throttled = words[2] / 1e3;
  for (std::size_t at = head; at < words.size(); at += words_of_core) {
    if (words[at] >= most_cores) return {};
    const auto word = words[at + 1];
    shares.cores[static_cast<int>(words[at])] = {
        share(word >> 20U & ten_bits), share(word >> 10U & ten_bits), share(word & ten_bits)};
  }
  return shares;
}

}  // namespace trireme::telemetry
