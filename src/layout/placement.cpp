// SPDX-License-Identifier: Apache-2.0
#include "trireme/layout/placement.hpp"

namespace trireme::layout {
namespace {

bool goes_up(const Placement& placement, int virtual_stage) {
  return placement.kind == PlacementKind::v_shaped && virtual_stage % 2 == 1;
}

}  // namespace

int Placement::position_of(ChunkPlace place) const {
  const int turn = goes_up(*this, place.virtual_stage) ? stages - 1 - place.stage : place.stage;
  return place.virtual_stage * stages + turn;
}

ChunkPlace Placement::place_of(int position) const {
  const int virtual_stage = position / stages;
  const int turn = position % stages;
  return {goes_up(*this, virtual_stage) ? stages - 1 - turn : turn, virtual_stage};
}

ChunkPlace Placement::neighbour(ChunkPlace place, int step) const {
  const int position = position_of(place) + step;
  return position < 0 || position >= positions() ? no_place : place_of(position);
}

}  // namespace trireme::layout
