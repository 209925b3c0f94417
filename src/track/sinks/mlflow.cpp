// SPDX-License-Identifier: Apache-2.0
// Runs of an MLflow tracking server, by its REST API 2.0 (mlflow.org/docs/latest/rest-api.html).
#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/text.hpp"

#include "server.hpp"
#include "sinks.hpp"

#include <algorithm>

namespace trireme::track {
namespace {

using base::Json;

constexpr const char* experiment = "trireme";
/// Tag by which a run is found again that was made just before this process was killed.
constexpr const char* id_tag = "trireme.run_id";
/// Limits of one request, and of a parameter's value in older servers.
constexpr std::size_t most_metrics = 1000;
constexpr std::size_t most_parameters = 100;
constexpr std::size_t longest_parameter = 500;

std::vector<std::string> headers_from(const base::Environment& environment) {
  const auto token = environment.get("MLFLOW_TRACKING_TOKEN").value_or("");
  if (token.empty()) return {};
  return {base::format("Authorization: Bearer {}", token)};
}

const char* status_of(report::State state) {
  switch (state) {
    case report::State::running:
      return "RUNNING";
    case report::State::finished:
      return "FINISHED";
    case report::State::failed:
      return "FAILED";
    case report::State::stopped:
    case report::State::unknown:
      break;
  }
  return "KILLED";
}

/// A text at `path` of nested objects; throws if the server has answered otherwise.
std::string text_at(const Json& answer, std::initializer_list<const char*> path) {
  const Json* at = &answer;
  for (const auto* key : path) {
    if (!at->is_object() || !at->contains(key)) {
      throw base::Error(
          base::ExitCode::checkpoint,
          base::format("the server's answer has no '{}' (it may be no MLflow server); "
                       "see its log",
                       key));
    }
    at = &(*at)[key];
  }
  return at->is_string() ? at->get<std::string>() : at->dump();
}

class Mlflow : public Sink {
 public:
  Mlflow(const std::string& url, const Sync::Options& options)
      : server_(url, headers_from(options.environment), options.patience) {}

  /// Metrics of the same key, step, time and value are one in the server's database: rows that a
  /// killed process has sent may be sent again.
  void send(const RunFacts& run, std::span<const Row> rows, Json& state) override {
    open(run, state);
    Json metrics_json = Json::array();
    for (const auto& row : rows) {
      if (metrics_json.size() + row.points.size() > most_metrics) {
        log(state, std::exchange(metrics_json, Json::array()));
      }
      for (const auto& point : row.points) {
        metrics_json.push_back({{"key", metrics()[point.metric].name},
                                {"value", point.value},
                                {"timestamp", row.time_ms},
                                {"step", row.step}});
      }
    }
    if (!metrics_json.empty()) log(state, std::move(metrics_json));
  }

  void end(const RunFacts& run, Json& state) override {
    open(run, state);
    Json body{{"run_id", state["run_id"]}, {"status", status_of(run.state)}};
    const bool has_ended = run.state != report::State::running;
    if (has_ended) {
      body["end_time"] = run.end_ms;
      send_files(run);
    }
    server_.post(api("runs/update"), body);
  }

  std::string place(const RunFacts&) const override {
    return base::format("{}/#/experiments/{}/runs/{}", server_.url(), experiment_, run_);
  }

 private:
  static std::string api(const std::string& call) { return "/api/2.0/mlflow/" + call; }

  void log(const Json& state, Json metrics_json) {
    server_.post(api("runs/log-batch"),
                 {{"run_id", state["run_id"]}, {"metrics", std::move(metrics_json)}});
  }

  std::string experiment_id() {
    const auto found =
        server_.find(api(base::format("experiments/get-by-name?experiment_name={}", experiment)));
    if (!found.is_null()) return text_at(found, {"experiment", "experiment_id"});
    return text_at(server_.post(api("experiments/create"), {{"name", experiment}}),
                   {"experiment_id"});
  }

  void open(const RunFacts& run, Json& state) {
    if (!state.is_object()) {
      const auto experiment_text = experiment_id();
      auto found = find_run(run, experiment_text);
      if (found.empty()) found = make_run(run, experiment_text);
      send_parameters(run, found);
      state = {{"experiment_id", experiment_text}, {"run_id", found}};
    }
    experiment_ = text_at(state, {"experiment_id"});
    run_ = text_at(state, {"run_id"});
  }

  std::string find_run(const RunFacts& run, const std::string& experiment_text) {
    const auto answer = server_.post(
        api("runs/search"), {{"experiment_ids", {experiment_text}},
                             {"filter", base::format("tags.\"{}\" = '{}'", id_tag, run.id)},
                             {"max_results", 1}});
    const auto runs = answer.is_object() ? answer.value("runs", Json::array()) : Json::array();
    if (!runs.is_array() || runs.empty()) return {};
    return text_at(runs[0], {"info", "run_id"});
  }

  std::string make_run(const RunFacts& run, const std::string& experiment_text) {
    const Json tags{{{"key", id_tag}, {"value", run.id}},
                    {{"key", "mlflow.source.name"}, {"value", "trireme"}}};
    const auto answer = server_.post(api("runs/create"), {{"experiment_id", experiment_text},
                                                          {"run_name", run.name},
                                                          {"start_time", run.start_ms},
                                                          {"tags", tags}});
    return text_at(answer, {"run", "info", "run_id"});
  }

  /// Parameters never change on the server: those of the first sending stay.
  void send_parameters(const RunFacts& run, const std::string& id) {
    for (std::size_t begin = 0; begin < run.values.size(); begin += most_parameters) {
      const auto end = std::min(begin + most_parameters, run.values.size());
      Json parameters = Json::array();
      for (auto at = begin; at < end; ++at) {
        const auto& value = run.values[at];
        parameters.push_back(
            {{"key", value.key}, {"value", base::cut_utf8(value.text, longest_parameter)}});
      }
      server_.post(api("runs/log-batch"), {{"run_id", id}, {"params", std::move(parameters)}});
    }
  }

  /// What the run's page and configuration are, as artifacts, where the server takes them itself
  /// (mlflow server --artifacts-destination).
  void send_files(const RunFacts& run) {
    const auto answer = server_.get(api(base::format("runs/get?run_id={}", run_)));
    const auto uri = text_at(answer, {"run", "info", "artifact_uri"});
    constexpr std::string_view proxied = "mlflow-artifacts:/";
    if (!uri.starts_with(proxied)) return;
    for (const auto* name : {"report.html", "config.resolved.conf", "versions.json"}) {
      constexpr std::size_t most_bytes = std::size_t{64} << 20;
      const auto text =
          base::read_text_file(run.path / name, base::ExitCode::checkpoint, most_bytes);
      if (!text.ok()) continue;
      server_.put(base::format("/api/2.0/mlflow-artifacts/artifacts/{}/{}",
                               uri.substr(proxied.size()), name),
                  *text);
    }
  }

  Server server_;
  std::string experiment_;
  std::string run_;
};

}  // namespace

std::unique_ptr<Sink> mlflow_sink(const std::string& url, const Sync::Options& options) {
  return std::make_unique<Mlflow>(url, options);
}

}  // namespace trireme::track
