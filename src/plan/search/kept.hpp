// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/plan/layout_choice.hpp"
#include "trireme/schema/options.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Private to the room.
namespace trireme::plan {

/// Settings of a layout that stay as a configuration has them.
class KeptSettings {
 public:
  KeptSettings(const schema::Options& keys, const std::vector<std::string>& kept);

  /// Whether the layout has them, whatever it computes again. Those that are the same work with one
  /// rank, or one stage, are alike.
  bool allows(const LayoutChoice& choice) const;
  /// Activations that every layout computes again, where they are kept.
  const std::optional<config::Recompute>& recompute() const { return recompute_; }

 private:
  bool keeps(std::string_view key) const;

  LayoutChoice values_;
  std::optional<int> data_;
  std::vector<std::string> kept_;
  std::optional<config::Recompute> recompute_;
};

}  // namespace trireme::plan
