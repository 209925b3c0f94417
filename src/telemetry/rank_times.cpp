// SPDX-License-Identifier: Apache-2.0
#include "trireme/telemetry/rank_times.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/json_text.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <span>

namespace trireme::telemetry {
namespace {

namespace fs = std::filesystem;
using base::Json;

/// Nodes have their names once: {"nodes": ["n01", "n02"], "node": [0, 0, 1, 1],
/// "computing_ms": [..]}.
Json json_of(const RankTimes& times) {
  Json json{{"restart", times.restart}, {"step", times.step}, {"steps", times.steps}};
  std::map<std::string, std::size_t> known;
  auto nodes = Json::array();
  auto of_ranks = Json::array();
  auto computing = Json::array();
  for (const auto& rank : times.ranks) {
    const auto [found, is_new] = known.emplace(rank.node, nodes.size());
    if (is_new) nodes.push_back(rank.node);
    of_ranks.push_back(found->second);
    // Thousandths of a millisecond are enough, and short.
    computing.push_back(std::round(rank.computing_ms * 1e3) / 1e3);
  }
  json["nodes"] = std::move(nodes);
  json["node"] = std::move(of_ranks);
  json["computing_ms"] = std::move(computing);
  return json;
}

RankTimes times_from(const Json& json) {
  RankTimes times{json.at("restart"), json.at("step"), json.at("steps"), {}};
  const auto nodes = json.at("nodes").get<std::vector<std::string>>();
  const auto of_ranks = json.at("node").get<std::vector<std::size_t>>();
  const auto computing = json.at("computing_ms").get<std::vector<double>>();
  for (std::size_t rank = 0; rank < std::min(of_ranks.size(), computing.size()); ++rank) {
    times.ranks.push_back({static_cast<int>(rank), nodes.at(of_ranks[rank]), computing[rank]});
  }
  return times;
}

}  // namespace

fs::path rank_times_of_run(const fs::path& run) {
  return run / "ranks.json";
}

void write_rank_times(const fs::path& run, const RankTimes& times) {
  const auto path = rank_times_of_run(run);
  const auto partial = fs::path(path) += ".partial";
  const auto text = base::json_text(json_of(times)) + "\n";
  {
    const auto file = base::value_or_throw(
        base::open_file(partial, O_WRONLY | O_CREAT | O_TRUNC, 0644, base::ExitCode::checkpoint));
    base::write_at(file, std::as_bytes(std::span(text)), 0, partial, base::ExitCode::checkpoint);
  }
  std::error_code error;
  fs::rename(partial, path, error);
  if (error) {
    throw base::Error(base::ExitCode::checkpoint,
                      base::format("cannot rename '{}': {}", partial.string(), error.message()));
  }
}

base::Result<RankTimes> read_rank_times(const fs::path& run) {
  constexpr std::size_t most_bytes = std::size_t{64} << 20;
  const auto path = rank_times_of_run(run);
  std::error_code error;
  if (!fs::exists(path, error) && !error) return RankTimes{};
  const auto json = base::read_json_file(path, base::ExitCode::usage, most_bytes);
  if (!json.ok()) return json.failure();
  try {
    return times_from(*json);
  } catch (const std::exception&) {
    // A number where a text should be, a node that has no name.
    return base::usage_failure(base::format(
        "'{}' holds no times of ranks; a run that goes on writes it anew", path.string()));
  }
}

}  // namespace trireme::telemetry
