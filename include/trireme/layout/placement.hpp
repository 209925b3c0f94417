// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace trireme::layout {

/// Stage, and index of one of its chunks of the model.
struct ChunkPlace {
  int stage;
  int virtual_stage;
  bool operator==(const ChunkPlace&) const = default;
};

/// No place: before the first chunk of the model, or behind the last.
inline constexpr ChunkPlace no_place{-1, -1};

/// Order in which chunks, in the order of the model, lie on stages.
enum class PlacementKind {
  round_robin,  ///< from the first stage to the last, again and again
  v_shaped      ///< down the stages and up again: neighbours at a turn are on one stage
};

/// Places of the chunks of a model: the only function between a chunk's position in the model and
/// its place on the pipeline.
struct Placement {
  int stages = 1;
  int virtual_stages = 1;
  PlacementKind kind = PlacementKind::round_robin;

  int positions() const { return stages * virtual_stages; }
  /// Position of a place in the model, from 0.
  int position_of(ChunkPlace place) const;
  ChunkPlace place_of(int position) const;

  /// The chunk before or after, which may be on the same stage; no_place at the ends of the model.
  ChunkPlace previous(ChunkPlace place) const { return neighbour(place, -1); }
  ChunkPlace next(ChunkPlace place) const { return neighbour(place, 1); }
  bool is_first(ChunkPlace place) const { return position_of(place) == 0; }
  bool is_last(ChunkPlace place) const { return position_of(place) + 1 == positions(); }
  /// Stage of the embedding, and that of the head.
  int first_stage() const { return place_of(0).stage; }
  int last_stage() const { return place_of(positions() - 1).stage; }

 private:
  ChunkPlace neighbour(ChunkPlace place, int step) const;
};

}  // namespace trireme::layout
