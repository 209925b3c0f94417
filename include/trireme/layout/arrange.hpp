#pragma once

#include "trireme/layout/mesh.hpp"

#include <functional>
#include <optional>

namespace trireme::layout {

/// How many ranks each axis is asked to have.
struct Degrees {
  int tensor = 1;
  int pipeline = 1;
  /// None: whatever the other two leave of the world.
  std::optional<int> data = std::nullopt;
};

/// Whether something beyond the world size (a model, a batch) can use a mesh. It is asked only
/// when there are choices to propose.
using Suits = std::function<bool(const Mesh&)>;

/// pp x dp x tp in the default order, on exactly `world_size` ranks. The failure
/// (ExitCode::launch) proposes the nearest degrees that fill the world and suit; without `suits`
/// all do.
base::Result<Mesh> arrange(const Degrees& degrees, int world_size, const Suits& suits = {});

}  // namespace trireme::layout
