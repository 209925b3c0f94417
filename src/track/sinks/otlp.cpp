// SPDX-License-Identifier: Apache-2.0
// OpenTelemetry's metrics over OTLP/HTTP in JSON (opentelemetry-proto, metrics/v1): each number of
// a row is a data point with the time of its step. Points are the same at each call, so that one
// that is sent again after a kill replaces itself in a store of time series. The step is a number
// of its own, never an attribute.
#include "trireme/base/format.hpp"
#include "trireme/base/text.hpp"

#include "server.hpp"
#include "sinks.hpp"

#include <map>

namespace trireme::track {
namespace {

using base::Json;

/// OTEL_EXPORTER_OTLP_HEADERS: "name=value,name=value".
std::vector<std::string> headers_from(const base::Environment& environment) {
  const auto text = environment.get("OTEL_EXPORTER_OTLP_HEADERS").value_or("");
  std::vector<std::string> headers;
  for (const auto part : base::split(text, ',')) {
    const auto equals = part.find('=');
    if (equals == std::string_view::npos) continue;
    headers.push_back(base::format("{}: {}", base::trimmed(part.substr(0, equals)),
                                   base::trimmed(part.substr(equals + 1))));
  }
  return headers;
}

Json attribute(const char* key, const std::string& text) {
  return {{"key", key}, {"value", {{"stringValue", text}}}};
}

/// Time of a row in nanoseconds. Steps of the same millisecond have microseconds of their own, the
/// same at each call: a point is known by its name and time.
std::string nanoseconds(const Row& row) {
  return base::format("{}{:03}000", row.time_ms, row.step % 1000);
}

/// "trireme.train.loss".
std::string name_of(const Metric& metric) {
  std::string name = base::format("trireme.{}", metric.name);
  for (char& letter : name) {
    if (letter == '/') letter = '.';
  }
  // Base units stand in the unit, not in the name.
  return name.ends_with("_ms") ? name.substr(0, name.size() - 3) : name;
}

Json metric_json(std::size_t index, Json points) {
  const auto& metric = metrics()[index];
  Json json{{"name", name_of(metric)}, {"description", metric.help}, {"unit", metric.unit}};
  if (metric.is_counter) {
    constexpr int cumulative = 2;
    json["sum"] = {{"dataPoints", std::move(points)},
                   {"aggregationTemporality", cumulative},
                   {"isMonotonic", true}};
  } else {
    json["gauge"] = {{"dataPoints", std::move(points)}};
  }
  return json;
}

class Otlp : public Sink {
 public:
  Otlp(const std::string& url, const Sync::Options& options)
      : server_(url, headers_from(options.environment), options.patience) {}

  void send(const RunFacts& run, std::span<const Row> rows, Json& state) override {
    std::map<std::size_t, Json> points;  // by metric
    for (const auto& row : rows) {
      for (const auto& point : row.points) {
        const auto& metric = metrics()[point.metric];
        Json json{{"timeUnixNano", nanoseconds(row)},
                  {"asDouble", point.value * metric.to_base_unit}};
        if (metric.is_counter) json["startTimeUnixNano"] = base::format("{}000000", run.start_ms);
        points[point.metric].push_back(std::move(json));
      }
    }
    Json all = Json::array();
    for (auto& [index, list] : points) all.push_back(metric_json(index, std::move(list)));
    server_.post("/v1/metrics", request(run, std::move(all)));
    state = Json::object();
  }
  void end(const RunFacts&, Json&) override {}
  std::string place(const RunFacts&) const override { return server_.url() + "/v1/metrics"; }

 private:
  static Json request(const RunFacts& run, Json all) {
    Json scope{{"scope", {{"name", "trireme"}}}, {"metrics", std::move(all)}};
    Json resource{{"attributes",
                   {attribute("service.name", "trireme"), attribute("service.instance.id", run.id),
                    attribute("trireme.run", run.name)}}};
    Json of_run{{"resource", std::move(resource)}, {"scopeMetrics", Json::array()}};
    of_run["scopeMetrics"].push_back(std::move(scope));
    Json body{{"resourceMetrics", Json::array()}};
    body["resourceMetrics"].push_back(std::move(of_run));
    return body;
  }

  Server server_;
};

}  // namespace

std::unique_ptr<Sink> otlp_sink(const std::string& url, const Sync::Options& options) {
  return std::make_unique<Otlp>(url, options);
}

}  // namespace trireme::track
