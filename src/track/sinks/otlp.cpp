// SPDX-License-Identifier: Apache-2.0
// OpenTelemetry's metrics and traces over OTLP/HTTP in JSON (opentelemetry-proto, metrics/v1 and
// trace/v1). Each number of a row is a data point with the time of its step; the step is a number
// of its own, never an attribute of one. Points and spans are the same at each call, so that one
// that is sent again after a kill replaces itself in a store.
#include "trireme/base/format.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/base/log.hpp"
#include "trireme/base/text.hpp"

#include "server.hpp"
#include "sinks.hpp"
#include "track/spans.hpp"

#include <map>

namespace trireme::track {
namespace {

using base::Json;

/// OTEL_EXPORTER_OTLP_HEADERS: "name=value,name=value".
std::vector<std::string> metadata_from(const base::Environment& environment) {
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

/// Whole numbers are texts there, as in all JSON of Protocol Buffers.
Json attribute_value(const Json& value) {
  if (value.is_number_integer()) return {{"intValue", base::json_text(value)}};
  if (value.is_number()) return {{"doubleValue", value}};
  return {{"stringValue", value}};
}

Json attributes_json(const Attributes& attributes) {
  Json all = Json::array();
  for (const auto& [key, value] : attributes) {
    all.push_back({{"key", key}, {"value", attribute_value(value)}});
  }
  return all;
}

Json span_json(const Span& span) {
  constexpr int internal = 1;
  Json json{{"traceId", span.trace_id}, {"spanId", span.span_id}};
  if (!span.parent_id.empty()) json["parentSpanId"] = span.parent_id;
  json["name"] = span.name;
  json["kind"] = internal;
  json["startTimeUnixNano"] = base::format("{}", span.begin_ns);
  json["endTimeUnixNano"] = base::format("{}", span.end_ns);
  json["attributes"] = attributes_json(span.attributes);
  return json;
}

/// {"resourceSpans": [{"resource", "scopeSpans": [{"scope", "spans"}]}]}, and so for metrics.
Json request(const char* kind, const Attributes& resource, Json all) {
  const bool is_spans = std::string_view(kind) == "Spans";
  Json scope{{"scope", {{"name", "trireme"}}}, {is_spans ? "spans" : "metrics", std::move(all)}};
  Json of_resource{{"resource", {{"attributes", attributes_json(resource)}}},
                   {base::format("scope{}", kind), Json::array()}};
  of_resource[base::format("scope{}", kind)].push_back(std::move(scope));
  const auto key = base::format("resource{}", kind);
  Json body{{key, Json::array()}};
  body[key].push_back(std::move(of_resource));
  return body;
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
      : server_(url, metadata_from(options.environment), options) {}

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
    server_.post("/v1/metrics", request("Metrics",
                                        {{"service.name", "trireme"},
                                         {"service.instance.id", run.id},
                                         {"trireme.run", run.name}},
                                        std::move(all)));
    send_spans(run, rows);
    state = Json::object();
  }

  bool takes_traces() const override { return takes_traces_; }
  std::int64_t send_trace(const RunFacts& run, const telemetry::RankTrace& trace) override {
    RankSpans spans(run, trace);
    const auto resource = spans.resource();
    std::int64_t count = 0;
    for (auto block = spans.next(most_spans); !block.empty(); block = spans.next(most_spans)) {
      count += static_cast<std::int64_t>(block.size());
      post(resource, block);
    }
    return count;
  }

  void end(const RunFacts&, Json&) override {}
  std::string place(const RunFacts&) const override { return server_.url() + "/v1/metrics"; }

 private:
  /// Most spans of a request; each has some 500 bytes.
  static constexpr std::size_t most_spans = 2000;

  /// Starts of a run may be of several jobs: each has a resource of its own.
  void send_spans(const RunFacts& run, std::span<const Row> rows) {
    std::map<std::int64_t, std::vector<Span>> by_start;
    for (const auto& row : rows) {
      auto spans = spans_of(run, row);
      for (std::size_t at = 0; at < spans.size(); ++at) {
        by_start[row.activities[at].restart].push_back(std::move(spans[at]));
      }
    }
    for (const auto& [restart, spans] : by_start) post(resource_of(run, restart), spans);
  }

  void post(const Attributes& resource, const std::vector<Span>& spans) {
    if (!takes_traces_) return;
    Json all = Json::array();
    for (const auto& span : spans) all.push_back(span_json(span));
    takes_traces_ = server_.offer("/v1/traces", request("Spans", resource, std::move(all)));
    if (!takes_traces_) {
      base::log::local::info("track", "{} has no /v1/traces: it gets metrics alone", server_.url());
    }
  }

  Server server_;
  bool takes_traces_ = true;
};

}  // namespace

std::unique_ptr<Sink> otlp_sink(const std::string& url, const Sync::Options& options) {
  return std::make_unique<Otlp>(url, options);
}

}  // namespace trireme::track
