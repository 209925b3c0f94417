// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/track/sync.hpp"
#include "trireme/track/target.hpp"

#include <filesystem>
#include <memory>
#include <string>

namespace trireme::track {

/// Exported weights as versions of a registered model on an MLflow server, linked to the run that
/// trained them. What was done before, by a process that was killed, is found, and not done twice.
class ModelRegistry {
 public:
  struct Options {
    base::Environment environment = {};  ///< MLFLOW_TRACKING_TOKEN
    std::chrono::milliseconds patience{30'000};
  };
  struct Version {
    std::string model;
    std::string number;
    std::string page;  ///< for people
    bool is_new = true;
  };

  /// Finds the run on the server by its tag, or makes it. Failures (usage): the target is no MLflow
  /// server, the name is none that MLflow takes; no run directory, or one without a record. Throws
  /// Error (checkpoint) if the server refuses, or does not take artifacts itself.
  static base::Result<ModelRegistry> open(const std::filesystem::path& run, const Target& target,
                                          const std::string& model, const Options& options);
  ModelRegistry(ModelRegistry&&) noexcept;
  ModelRegistry& operator=(ModelRegistry&&) = delete;
  ModelRegistry(const ModelRegistry&) = delete;
  ModelRegistry& operator=(const ModelRegistry&) = delete;
  ~ModelRegistry();

  /// Sends the folder's files as artifacts `models/<label>` of the run, block by block, and makes a
  /// version of the model of them; one that is there already is answered as it is. Throws Error.
  Version add(const std::filesystem::path& folder, const std::string& label);

 private:
  struct Parts;
  explicit ModelRegistry(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace trireme::track
