// SPDX-License-Identifier: Apache-2.0
#include "trireme/track/rank_scrape.hpp"

#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/number.hpp"
#include "trireme/base/text.hpp"
#include "trireme/track/endpoint.hpp"
#include "trireme/web/http.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <map>
#include <mutex>
#include <optional>
#include <thread>

namespace trireme::track {
namespace {

namespace fs = std::filesystem;

constexpr std::chrono::seconds limit{2};
/// No more nodes are asked after this time: people wait.
constexpr std::chrono::seconds limit_of_all{5};
/// So many nodes are asked at once.
constexpr std::size_t most_threads = 16;

/// "HOST:PORT" of each node, from the list for file_sd.
std::vector<std::string> targets_of(const fs::path& run) {
  constexpr std::size_t most_bytes = std::size_t{4} << 20;
  const auto json =
      base::read_json_file(run / prometheus_targets, base::ExitCode::usage, most_bytes);
  std::vector<std::string> targets;
  if (!json.ok() || !json->is_array()) return targets;
  for (const auto& entry : *json) {
    if (!entry.is_object()) continue;
    for (const auto& target : entry.value("targets", base::Json::array())) {
      if (target.is_string()) targets.push_back(target);
    }
  }
  return targets;
}

/// {name: value} of `run="a",node="n\"1"`; nothing if it is not written so.
std::optional<std::map<std::string, std::string, std::less<>>> labels_of(std::string_view text) {
  std::map<std::string, std::string, std::less<>> labels;
  while (!text.empty()) {
    const auto equals = text.find("=\"");
    if (equals == std::string_view::npos) return std::nullopt;
    std::string value;
    auto at = equals + 2;
    for (; at < text.size() && text[at] != '"'; ++at) {
      if (text[at] == '\\' && ++at == text.size()) return std::nullopt;
      value += text[at - 1] == '\\' && text[at] == 'n' ? '\n' : text[at];
    }
    if (at == text.size()) return std::nullopt;
    labels[std::string(text.substr(0, equals))] = std::move(value);
    text.remove_prefix(std::min(text.size(), at + 2));
  }
  return labels;
}

/// Time in a line `name{labels} value`.
std::optional<telemetry::RankTime> time_in(std::string_view line) {
  line.remove_prefix(rank_computing_metric.size());
  const auto end = line.rfind("} ");
  if (!line.starts_with('{') || end == std::string_view::npos) return std::nullopt;
  const auto labels = labels_of(line.substr(1, end - 1));
  const auto seconds = base::number_in<double>(base::trimmed(line.substr(end + 2)));
  if (!labels || !seconds || !std::isfinite(*seconds)) return std::nullopt;
  const auto node = labels->find("node");
  const auto rank = labels->find("rank");
  if (node == labels->end() || rank == labels->end()) return std::nullopt;
  const auto number = base::number_in<int>(rank->second);
  if (!number || *number < 0) return std::nullopt;
  return telemetry::RankTime{*number, node->second, *seconds * 1e3};
}

}  // namespace

std::vector<telemetry::RankTime> rank_times_in(std::string_view exposition) {
  std::vector<telemetry::RankTime> times;
  for (const auto line : base::split(exposition, '\n')) {
    if (!line.starts_with(rank_computing_metric)) continue;
    if (auto time = time_in(line)) times.push_back(std::move(*time));
  }
  return times;
}

std::vector<telemetry::RankTime> scrape_ranks(const fs::path& run) {
  const auto targets = targets_of(run);
  const auto token = base::read_text_file(run / prometheus_token, base::ExitCode::usage);
  if (targets.empty() || !token.ok()) return {};
  const auto header = base::format("Authorization: Bearer {}", base::trimmed(*token));
  web::HttpClient client;
  std::vector<telemetry::RankTime> times;
  std::mutex mutex;
  std::atomic<std::size_t> next = 0;
  const auto end = std::chrono::steady_clock::now() + limit_of_all;
  const auto ask = [&] {
    for (auto at = next++; at < targets.size() && std::chrono::steady_clock::now() < end;
         at = next++) {
      const auto answer = client.perform({.url = base::format("http://{}/metrics", targets[at]),
                                          .headers = {header},
                                          .limit = limit});
      if (!answer.ok()) continue;
      auto found = rank_times_in(answer.text);
      const std::lock_guard lock(mutex);
      std::move(found.begin(), found.end(), std::back_inserter(times));
    }
  };
  std::vector<std::thread> threads;
  for (std::size_t at = 0; at < std::min(most_threads, targets.size()); ++at) {
    threads.emplace_back(ask);
  }
  for (auto& thread : threads) thread.join();
  std::sort(times.begin(), times.end(),
            [](const auto& one, const auto& other) { return one.rank < other.rank; });
  return times;
}

}  // namespace trireme::track
