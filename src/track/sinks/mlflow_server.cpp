// SPDX-License-Identifier: Apache-2.0
#include "mlflow_server.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/text.hpp"

#include <set>
#include <utility>

namespace trireme::track {
namespace {

using base::Json;

constexpr const char* experiment_name = "trireme";
/// Tag by which a run is found again that was made just before this process was killed.
constexpr const char* id_tag = "trireme.run_id";
/// Limits of one request, and of a parameter's value in older servers.
constexpr std::size_t most_parameters = 100;
constexpr std::size_t longest_parameter = 500;
constexpr std::string_view proxied = "mlflow-artifacts:/";

std::vector<std::string> authorization_from(const base::Environment& environment) {
  const auto token = environment.get("MLFLOW_TRACKING_TOKEN").value_or("");
  if (token.empty()) return {};
  return {base::format("Authorization: Bearer {}", token)};
}

std::string api(const std::string& call) {
  return "/api/2.0/mlflow/" + call;
}

std::string artifact_path(const std::string& uri, const std::string& name) {
  return base::format("/api/2.0/mlflow-artifacts/artifacts/{}/{}", uri.substr(proxied.size()),
                      web::url_encoded(name, true));
}

}  // namespace

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

MlflowServer::MlflowServer(const std::string& url, const Sync::Options& options)
    : server_(url, authorization_from(options.environment), options) {}

Json MlflowServer::post(const std::string& call, const Json& body) {
  return server_.post(api(call), body);
}

Json MlflowServer::get(const std::string& call) {
  return server_.get(api(call));
}

Json MlflowServer::find(const std::string& call) {
  return server_.find(api(call));
}

MlflowServer::Place MlflowServer::open(const RunFacts& run) {
  Place place{experiment_id(), {}};
  const auto found = find_run(run, place.experiment);
  place.run =
      found.is_null() ? make_run(run, place.experiment) : text_at(found, {"info", "run_id"});
  send_parameters(run, place, found);
  return place;
}

std::string MlflowServer::page(const Place& place) const {
  return base::format("{}/#/experiments/{}/runs/{}", url(), place.experiment, place.run);
}

std::string MlflowServer::artifact_uri(const Place& place) {
  return text_at(get(base::format("runs/get?run_id={}", place.run)),
                 {"run", "info", "artifact_uri"});
}

bool MlflowServer::takes_artifacts(const std::string& uri) {
  return uri.starts_with(proxied);
}

void MlflowServer::put(const std::string& uri, const std::string& name, const std::string& bytes) {
  server_.put(artifact_path(uri, name), bytes);
}

void MlflowServer::put_file(const std::string& uri, const std::string& name,
                            const std::filesystem::path& file) {
  server_.put_file(artifact_path(uri, name), file);
}

std::string MlflowServer::experiment_id() {
  const auto found =
      find(base::format("experiments/get-by-name?experiment_name={}", experiment_name));
  if (!found.is_null()) return text_at(found, {"experiment", "experiment_id"});
  return text_at(post("experiments/create", {{"name", experiment_name}}), {"experiment_id"});
}

Json MlflowServer::find_run(const RunFacts& run, const std::string& experiment) {
  const auto answer =
      post("runs/search", {{"experiment_ids", {experiment}},
                           {"filter", base::format("tags.\"{}\" = '{}'", id_tag, run.id)},
                           {"max_results", 1}});
  const auto runs = answer.is_object() ? answer.value("runs", Json::array()) : Json::array();
  return runs.is_array() && !runs.empty() ? runs[0] : Json(nullptr);
}

std::string MlflowServer::make_run(const RunFacts& run, const std::string& experiment) {
  const Json tags{{{"key", id_tag}, {"value", run.id}},
                  {{"key", "mlflow.source.name"}, {"value", "trireme"}}};
  const auto answer = post("runs/create", {{"experiment_id", experiment},
                                           {"run_name", run.name},
                                           {"start_time", run.start_ms},
                                           {"tags", tags}});
  return text_at(answer, {"run", "info", "run_id"});
}

namespace {

/// Keys of the parameters that a run has on the server.
std::set<std::string> known_parameters(const Json& run) {
  std::set<std::string> keys;
  if (!run.is_object()) return keys;
  const auto data = run.value("data", Json::object());
  if (!data.is_object()) return keys;
  for (const auto& each : data.value("params", Json::array())) keys.insert(text_at(each, {"key"}));
  return keys;
}

}  // namespace

void MlflowServer::send_parameters(const RunFacts& run, const Place& place, const Json& found) {
  const auto known = known_parameters(found);
  Json parameters = Json::array();
  const auto send = [&] {
    if (parameters.empty()) return;
    post("runs/log-batch",
         {{"run_id", place.run}, {"params", std::exchange(parameters, Json::array())}});
  };
  for (const auto& value : run.values) {
    if (known.count(value.key) > 0) continue;
    parameters.push_back(
        {{"key", value.key}, {"value", base::cut_utf8(value.text, longest_parameter)}});
    if (parameters.size() == most_parameters) send();
  }
  send();
}

}  // namespace trireme::track
