// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trireme::track {

/// Prometheus' text format 0.0.4.
class Exposition {
 public:
  using Labels = std::vector<std::pair<std::string_view, std::string>>;
  enum class Type { gauge, counter };

  /// Begins a metric; samples follow.
  void metric(std::string_view name, std::string_view help, Type type = Type::gauge);
  /// A number of the metric that was begun last. Infinities and NaN are left out.
  void sample(const Labels& labels, double value);

  const std::string& text() const { return text_; }

 private:
  std::string name_;
  std::string text_;
};

/// The newest numbers of a run's record, as the textfile sink has them.
class RunExposition {
 public:
  explicit RunExposition(std::filesystem::path run);
  ~RunExposition();
  RunExposition(const RunExposition&) = delete;
  RunExposition& operator=(const RunExposition&) = delete;

  /// Reads what the run has written since the last call. Throws Error.
  void add_to(Exposition& exposition);

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace trireme::track
