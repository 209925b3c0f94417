// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/json.hpp"
#include "trireme/base/result.hpp"
#include "trireme/config/recompute.hpp"
#include "trireme/layout/mesh.hpp"
#include "trireme/layout/schedule.hpp"
#include "trireme/schema/options.hpp"

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace trireme::plan {

/// Settings that a search chooses. What they leave of a configuration is as it is there.
struct LayoutChoice {
  int ranks = 1;
  int tensor = 1;
  int pipeline = 1;
  int virtual_stages = 1;
  layout::ScheduleKind schedule = layout::ScheduleKind::one_forward_one_backward;
  std::int64_t micro_batch = 1;
  bool sequence = false;
  int zero_level = 0;
  config::Recompute recompute{};

  int data() const { return ranks / (tensor * pipeline); }
  layout::Mesh mesh() const { return layout::Mesh::of(pipeline, data(), tensor); }
  bool operator==(const LayoutChoice&) const = default;

  /// All of it, for sorted containers.
  using Order = std::array<std::int64_t, 8 + config::activation_count>;
  Order order() const;
};

/// The values with this layout in place of theirs.
schema::Options with_layout(schema::Options keys, const LayoutChoice& choice);

/// "tp=4,pp=8,dp=32,v=2,schedule=interleaved,mbs=1,sp=true,zero=1,again=norms+activation": what is
/// as by default is left out, but degrees and micro-batch.
std::string text(const LayoutChoice& choice);
/// Lines of a configuration that say the same.
std::string settings_text(const LayoutChoice& choice, const schema::Options& keys);
/// {"parallel.tensor": "4", ...}.
base::Json settings_json(const LayoutChoice& choice);

/// Values that a layout is to have, the others may be any.
class LayoutFilter {
 public:
  /// Words of text(LayoutChoice), comma between them. The failure (usage) names the word.
  static base::Result<LayoutFilter> parse(std::string_view text);

  bool matches(const LayoutChoice& choice) const;
  /// The same, whatever is computed again.
  bool matches_arrangement(const LayoutChoice& choice) const;

 private:
  /// Words and values.
  std::vector<std::pair<std::string, std::string>> wanted_;
};

/// Number of settings in which layouts differ. What follows from the others is none.
int settings_changed(const LayoutChoice& from, const LayoutChoice& to);
/// Settings in which the layouts differ, as words with the values of the second: "pp=2,zero=1".
/// What follows from the others (dp) is left out.
std::vector<std::string> differences(const LayoutChoice& from, const LayoutChoice& to);

}  // namespace trireme::plan
