// SPDX-License-Identifier: Apache-2.0
#include "placement.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/text.hpp"
#include "trireme/record/failure.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <map>
#include <optional>

namespace trireme::report {
namespace {

constexpr int most_ranks = 1024;
constexpr std::size_t end_bytes = std::size_t{8} << 10;

/// The last line of a rank's log that is one.
std::optional<postmortem::LogLine> last_line(const std::filesystem::path& path) {
  const auto file = base::open_file(path, O_RDONLY | O_NONBLOCK);
  struct stat facts {};
  if (!file.ok() || ::fstat(file->get(), &facts) != 0 || !S_ISREG(facts.st_mode)) return {};
  const auto size = static_cast<std::size_t>(facts.st_size);
  std::string text(std::min(size, end_bytes), '\0');
  try {
    base::read_at(*file, std::as_writable_bytes(std::span(text)), size - text.size(), path);
  } catch (const base::Error&) {
    return {};
  }
  const auto lines = base::split(text, '\n');
  for (auto line = lines.rbegin(); line != lines.rend(); ++line) {
    if (auto parsed = postmortem::parse_log_line(*line); parsed.ok()) {
      return std::move(parsed).value();
    }
  }
  return {};
}

}  // namespace

std::vector<NodeRanks> nodes_of(const std::filesystem::path& run) {
  const auto log = [&run](int rank) { return record::rank_log(run, base::Rank(rank)); };
  const auto first = last_line(log(0));
  if (!first) return {};
  std::vector<NodeRanks> nodes;
  for (int rank = 0; rank < std::min(first->world_size, most_ranks); ++rank) {
    const auto line = rank == 0 ? first : last_line(log(rank));
    if (!line || line->world_size != first->world_size) continue;
    auto node = std::find_if(nodes.begin(), nodes.end(),
                             [&line](const auto& each) { return each.node == line->node; });
    if (node == nodes.end()) node = nodes.insert(nodes.end(), NodeRanks{line->node, {}});
    node->ranks.push_back(rank);
  }
  return nodes;
}

std::vector<NodeRanks> nodes_of(const std::vector<telemetry::RankTime>& times) {
  std::vector<NodeRanks> nodes;
  std::map<std::string, std::size_t> known;
  for (const auto& time : times) {
    const auto [found, is_new] = known.emplace(time.node, nodes.size());
    if (is_new) nodes.push_back({time.node, {}});
    auto& node = nodes[found->second];
    node.ranks.push_back(time.rank);
    if (node.slowest >= 0 && time.computing_ms <= node.slowest_ms) continue;
    node.slowest = time.rank;
    node.slowest_ms = time.computing_ms;
  }
  return nodes;
}

double median_ms(const std::vector<telemetry::RankTime>& times) {
  if (times.empty()) return telemetry::absent;
  std::vector<double> sorted;
  for (const auto& time : times) sorted.push_back(time.computing_ms);
  const auto middle = sorted.begin() + static_cast<std::ptrdiff_t>(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return *middle;
}

std::string ranges_text(const std::vector<int>& numbers) {
  std::string text;
  for (std::size_t begin = 0; begin < numbers.size();) {
    auto end = begin;
    while (end + 1 < numbers.size() && numbers[end + 1] == numbers[end] + 1) ++end;
    if (!text.empty()) text += ", ";
    text += begin == end ? base::format("{}", numbers[begin])
                         : base::format("{}-{}", numbers[begin], numbers[end]);
    begin = end + 1;
  }
  return text;
}

}  // namespace trireme::report
