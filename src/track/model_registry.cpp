// SPDX-License-Identifier: Apache-2.0
#include "trireme/track/model_registry.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/text.hpp"
#include "trireme/postmortem/postmortem.hpp"

#include "facts.hpp"
#include "sinks/mlflow_server.hpp"

#include <algorithm>

namespace trireme::track {
namespace {

namespace fs = std::filesystem;
using base::Json;

/// MLflow's rule of names; control characters have no place in URLs.
base::Status check_name(const std::string& name) {
  const bool is_refused = std::any_of(name.begin(), name.end(), [](char letter) {
    return letter == '/' || letter == ':' || base::is_control(letter);
  });
  if (!name.empty() && !is_refused) return {};
  return base::usage_failure(base::format(
      "'{}' is no name of a model (MLflow takes none with '/' or ':'); give --model-name "
      "NAME",
      base::printable(name)));
}

/// Facts of a run whose record has begun.
base::Result<RunFacts> facts_of(const fs::path& run) {
  if (!postmortem::is_run(run)) {
    const auto refused = postmortem::examine(run, {});
    if (!refused.ok()) return refused.failure();
  }
  telemetry::RecordReader reader(telemetry::record_of_run(run));
  RunFacts facts;
  read_on(run, reader, facts);
  if (!facts.id.empty()) return facts;
  return base::usage_failure(base::format(
      "'{}' has no record of a run (a version of a model is linked to the run that trained it); "
      "export without --register",
      run.string()));
}

std::vector<fs::path> files_of(const fs::path& folder) {
  std::vector<fs::path> files;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.is_regular_file()) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace

struct ModelRegistry::Parts {
  Parts(RunFacts known, const std::string& url, const Options& options, std::string name)
      : facts(std::move(known)),
        server(url, {.environment = options.environment, .patience = options.patience}),
        model(std::move(name)) {}

  RunFacts facts;
  MlflowServer server;
  std::string model;
  MlflowServer::Place place = {};
  std::string artifacts = {};

  Version version(const std::string& number, bool is_new) const;
  std::optional<std::string> find_version(const std::string& source);
  void make_model();
};

ModelRegistry::Version ModelRegistry::Parts::version(const std::string& number, bool is_new) const {
  return {model, number,
          base::format("{}/#/models/{}/versions/{}", server.url(), web::url_encoded(model), number),
          is_new};
}

std::optional<std::string> ModelRegistry::Parts::find_version(const std::string& source) {
  const auto filter = base::format("run_id='{}'", place.run);
  std::string page;
  do {
    auto call =
        base::format("model-versions/search?filter={}&max_results=1000", web::url_encoded(filter));
    if (!page.empty()) call += "&page_token=" + web::url_encoded(page);
    const auto answer = server.get(call);
    if (!answer.is_object()) return std::nullopt;
    for (const auto& each : answer.value("model_versions", Json::array())) {
      if (text_at(each, {"name"}) == model && text_at(each, {"source"}) == source) {
        return text_at(each, {"version"});
      }
    }
    page = answer.value("next_page_token", "");
  } while (!page.empty());
  return std::nullopt;
}

void ModelRegistry::Parts::make_model() {
  const auto call = base::format("registered-models/get?name={}", web::url_encoded(model));
  if (!server.find(call).is_null()) return;
  try {
    server.post("registered-models/create", {{"name", model}});
  } catch (const base::Error&) {
    // Another process has made it meanwhile.
    if (server.find(call).is_null()) throw;
  }
}

ModelRegistry::ModelRegistry(std::unique_ptr<Parts> parts) : parts_(std::move(parts)) {}
ModelRegistry::ModelRegistry(ModelRegistry&&) noexcept = default;
ModelRegistry::~ModelRegistry() = default;

base::Result<ModelRegistry> ModelRegistry::open(const fs::path& run, const Target& target,
                                                const std::string& model, const Options& options) {
  if (target.kind != Kind::mlflow) {
    return base::usage_failure(
        base::format("'{}' has no registry of models; use --register mlflow=URL", target.text()));
  }
  auto facts = facts_of(run);
  if (!facts.ok()) return facts.failure();
  const auto name = model.empty() ? facts->name : model;
  if (auto checked = check_name(name); !checked.ok()) return checked.failure();
  auto parts = std::make_unique<Parts>(*std::move(facts), target.place, options, name);
  parts->place = parts->server.open(parts->facts);
  parts->artifacts = parts->server.artifact_uri(parts->place);
  if (!MlflowServer::takes_artifacts(parts->artifacts)) {
    throw base::Error(
        base::ExitCode::checkpoint,
        base::format("'{}' keeps artifacts at '{}' and does not take them itself; start it with "
                     "--artifacts-destination, or register the exported folder with MLflow's own "
                     "client",
                     target.place, parts->artifacts));
  }
  return ModelRegistry(std::move(parts));
}

ModelRegistry::Version ModelRegistry::add(const fs::path& folder, const std::string& label) {
  auto& [facts, server, model, place, artifacts] = *parts_;
  const auto name = base::format("models/{}", label);
  const auto source = base::format("{}/{}", artifacts, name);
  parts_->make_model();
  if (const auto known = parts_->find_version(source)) return parts_->version(*known, false);
  for (const auto& file : files_of(folder)) {
    server.put_file(artifacts, base::format("{}/{}", name, file.filename().string()), file);
  }
  const Json tags{{{"key", "trireme.run_id"}, {"value", facts.id}},
                  {{"key", "trireme.checkpoint"}, {"value", label}}};
  const auto answer =
      server.post("model-versions/create",
                  {{"name", model}, {"source", source}, {"run_id", place.run}, {"tags", tags}});
  return parts_->version(text_at(answer, {"model_version", "version"}), true);
}

}  // namespace trireme::track
