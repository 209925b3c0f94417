// SPDX-License-Identifier: Apache-2.0
// Runs of an MLflow tracking server: metrics, state, and files at the end.
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"

#include "mlflow_server.hpp"
#include "sinks.hpp"

namespace trireme::track {
namespace {

using base::Json;

/// Limit of one request.
constexpr std::size_t most_metrics = 1000;

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

class Mlflow : public Sink {
 public:
  Mlflow(const std::string& url, const Sync::Options& options) : server_(url, options) {}

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

  /// Not before there is a run on the server, which is RUNNING when it is made.
  bool resume(const RunFacts&, Json& state) override {
    constexpr const char* running = "RUNNING";
    if (!state.is_object() || state.value("status", Json()) == running) return false;
    server_.post("runs/update", {{"run_id", text_at(state, {"run_id"})}, {"status", running}});
    state["status"] = running;
    return true;
  }

  void end(const RunFacts& run, Json& state) override {
    open(run, state);
    Json body{{"run_id", state["run_id"]}, {"status", status_of(run.state)}};
    const bool has_ended = run.state != report::State::running;
    if (has_ended) {
      body["end_time"] = run.end_ms;
      send_files(run);
    }
    server_.post("runs/update", body);
    state["status"] = body["status"];
  }

  std::string place(const RunFacts&) const override { return server_.page(place_); }

 private:
  void log(const Json& state, Json metrics_json) {
    server_.post("runs/log-batch",
                 {{"run_id", state["run_id"]}, {"metrics", std::move(metrics_json)}});
  }

  void open(const RunFacts& run, Json& state) {
    if (!state.is_object()) {
      const auto made = server_.open(run);
      state = {{"experiment_id", made.experiment}, {"run_id", made.run}};
    }
    place_ = {text_at(state, {"experiment_id"}), text_at(state, {"run_id"})};
  }

  /// The run's page and configuration as artifacts, where the server takes them itself.
  void send_files(const RunFacts& run) {
    const auto uri = server_.artifact_uri(place_);
    if (!MlflowServer::takes_artifacts(uri)) return;
    for (const auto* name : {"report.html", "config.resolved.conf", "versions.json"}) {
      constexpr std::size_t most_bytes = std::size_t{64} << 20;
      const auto text =
          base::read_text_file(run.path / name, base::ExitCode::checkpoint, most_bytes);
      if (text.ok()) server_.put(uri, name, *text);
    }
  }

  MlflowServer server_;
  MlflowServer::Place place_;
};

}  // namespace

std::unique_ptr<Sink> mlflow_sink(const std::string& url, const Sync::Options& options) {
  return std::make_unique<Mlflow>(url, options);
}

}  // namespace trireme::track
