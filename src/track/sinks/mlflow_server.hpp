// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "server.hpp"
#include "track/rows.hpp"

#include <initializer_list>
#include <string>

namespace trireme::track {

/// A text at `path` of nested objects; throws Error (checkpoint) if a server has answered
/// otherwise.
std::string text_at(const base::Json& answer, std::initializer_list<const char*> path);

/// Runs of experiment "trireme" on an MLflow tracking server, by its REST API 2.0
/// (mlflow.org/docs/latest/rest-api.html).
class MlflowServer {
 public:
  struct Place {
    std::string experiment;
    std::string run;
  };

  /// MLFLOW_TRACKING_TOKEN of the environment is sent as a bearer token.
  MlflowServer(const std::string& url, const Sync::Options& options);

  const std::string& url() const { return server_.url(); }
  /// Path of a call: "runs/update".
  base::Json post(const std::string& call, const base::Json& body);
  base::Json get(const std::string& call);
  /// Null where the server answers 404.
  base::Json find(const std::string& call);

  /// The run with this tag `trireme.run_id`; made if there is none. Those of its parameters that
  /// the server does not have are sent: they never change there, and those of the first sending
  /// stay.
  Place open(const RunFacts& run);
  /// Page of a run.
  std::string page(const Place& place) const;

  /// URI of the run's artifacts: "mlflow-artifacts:/1/<run>/artifacts".
  std::string artifact_uri(const Place& place);
  /// Whether the server itself takes artifacts there (mlflow server --artifacts-destination).
  static bool takes_artifacts(const std::string& uri);
  void put(const std::string& uri, const std::string& name, const std::string& bytes);
  void put_file(const std::string& uri, const std::string& name, const std::filesystem::path& file);

 private:
  std::string experiment_id();
  /// Null if there is none.
  base::Json find_run(const RunFacts& run, const std::string& experiment);
  std::string make_run(const RunFacts& run, const std::string& experiment);
  void send_parameters(const RunFacts& run, const Place& place, const base::Json& found);

  Server server_;
};

}  // namespace trireme::track
