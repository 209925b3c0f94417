// SPDX-License-Identifier: Apache-2.0
#include "trireme/layout/chunk_buffers.hpp"

#include "unit/layout/schedules.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cstddef>

using namespace trireme::layout;
using namespace trireme::tests;

TEST_CASE("chunks take turns over the stages, or go down and up again") {
  const Placement turns{3, 2};
  CHECK(turns.place_of(2) == ChunkPlace{2, 0});
  CHECK(turns.place_of(3) == ChunkPlace{0, 1});
  CHECK(turns.last_stage() == 2);
  const Placement v{3, 2, PlacementKind::v_shaped};
  CHECK(v.place_of(2) == ChunkPlace{2, 0});
  CHECK(v.place_of(3) == ChunkPlace{2, 1});
  CHECK(v.place_of(5) == ChunkPlace{0, 1});
  CHECK(v.last_stage() == 0);
}

TEST_CASE("each position has one place, whose neighbours are the positions beside it") {
  for (const auto kind : {PlacementKind::round_robin, PlacementKind::v_shaped}) {
    for (const int stages : {1, 2, 3, 4}) {
      for (const int virtual_stages : {1, 2, 3}) {
        const Placement placement{stages, virtual_stages, kind};
        CAPTURE(stages, virtual_stages);
        ChunkPlace before = no_place;
        for (int position = 0; position < placement.positions(); ++position) {
          const auto place = placement.place_of(position);
          CHECK(placement.position_of(place) == position);
          CHECK(placement.previous(place) == before);
          CHECK(placement.is_first(place) == (position == 0));
          CHECK(placement.is_last(place) == (placement.next(place) == no_place));
          before = place;
        }
        CHECK(placement.is_last(before));
      }
    }
  }
}

TEST_CASE("a chunk has buffers for what it holds, and one more for what arrives") {
  const auto first = chunk_buffers(made(one_f, 4, 8), 0, Passes::both);
  REQUIRE(first.size() == 1);
  CHECK(first[0].activations == 4);
  CHECK(first[0].operands == 4);
  CHECK(first[0].inputs == 0);
  CHECK(first[0].output_gradients == 2);
  const auto third = chunk_buffers(made(one_f, 4, 8), 2, Passes::both);
  CHECK(third[0].activations == 2);
  CHECK(third[0].inputs == 3);
  const auto alone = chunk_buffers(made(one_f, 4, 8), 2, Passes::forward_alone);
  CHECK(alone[0].activations == 1);
  CHECK(alone[0].inputs == 2);
  CHECK(alone[0].output_gradients == 0);
}

TEST_CASE("longer rings let a chunk meet the same buffers after twice what it holds") {
  for (const int stages : {1, 2, 4, 9}) {
    for (int stage = 0; stage < stages; ++stage) {
      const auto least = chunk_buffers(made(one_f, stages, 32), stage, Passes::both).front();
      const auto fitted = with_common_period({least}).front();
      const int period = 2 * least.activations;
      CAPTURE(stages, stage);
      CHECK(fitted.activations == least.activations);
      CHECK(fitted.inputs == (stage == 0 ? 0 : period));
      CHECK(fitted.output_gradients == least.output_gradients);
      CHECK((fitted.output_gradients == 0 || period % fitted.output_gradients == 0));
    }
  }
  // Neither three nor four of three fit four activations' period of eight.
  const auto fitted = with_common_period({{.activations = 4, .inputs = 9, .output_gradients = 3}});
  CHECK(fitted.front().inputs == 16);
  CHECK(fitted.front().output_gradients == 4);
}

TEST_CASE("a backward of two actions has buffers for what the first leaves for the second") {
  Schedule schedule = made(one_f, 2, 3);
  const auto input = [](int micro_batch) {
    return Action{ActionKind::backward_input, micro_batch, 0};
  };
  const auto weight = [](int micro_batch) {
    return Action{ActionKind::backward_weight, micro_batch, 0};
  };
  const auto forward = [](int micro_batch) { return Action{ActionKind::forward, micro_batch, 0}; };
  schedule.actions[0] = {forward(0), forward(1), input(0), weight(0), forward(2),
                         input(1),   weight(1),  input(2), weight(2)};
  schedule.actions[1] = {forward(0), input(0), forward(1), input(1), weight(0),
                         forward(2), input(2), weight(1),  weight(2)};
  const auto first = chunk_buffers(schedule, 0, Passes::both);
  CHECK(first[0].activations == 2);
  CHECK(first[0].left == 1);
  CHECK(first[0].output_gradients == 2);
  const auto second = chunk_buffers(schedule, 1, Passes::both);
  // Micro-batch 1 keeps what its weights read behind the input's gradient, and nothing else.
  CHECK(second[0].activations == 1);
  CHECK(second[0].operands == 2);
  CHECK(second[0].left == 2);
  CHECK(second[0].inputs == 2);
  CHECK(second[0].output_gradients == 0);
}

TEST_CASE("chunks of one stage hand over without a message that arrives early") {
  // F0 F0' B0' F1 B0 F1' B1' F2 B1 ...
  const auto chunks = chunk_buffers(made(interleaved, 1, 4, 2), 0, Passes::both);
  REQUIRE(chunks.size() == 2);
  CHECK(chunks[0].inputs == 0);
  CHECK(chunks[1].inputs == 1);
  CHECK(chunks[0].output_gradients == 1);
  CHECK(chunks[1].output_gradients == 0);
}

TEST_CASE("where each chunk takes all micro-batches before the next, all have buffers for all") {
  constexpr int chunks = 128;
  constexpr int micro_batches = 256;
  const auto buffers = chunk_buffers(breadth_first(chunks, micro_batches), 0, Passes::both);
  REQUIRE(buffers.size() == chunks);
  for (int chunk = 0; chunk < chunks; ++chunk) {
    const auto& needs = buffers[static_cast<std::size_t>(chunk)];
    CHECK(needs.activations == micro_batches);
    CHECK(needs.operands == micro_batches);
    CHECK(needs.left == 0);
    CHECK(needs.inputs == (chunk == 0 ? 0 : micro_batches));
    CHECK(needs.output_gradients == (chunk + 1 == chunks ? 0 : micro_batches));
  }
}

TEST_CASE("a chunk's activations are those that a look at all of its stage's actions finds") {
  for (const auto kind : {one_f, interleaved, zb_v}) {
    const auto schedule = made(kind, 4, 8, has_virtual_stages(kind) ? 2 : 1);
    for (int stage = 0; stage < 4; ++stage) {
      const auto buffers = chunk_buffers(schedule, stage, Passes::both);
      for (int chunk = 0; chunk < schedule.virtual_stages; ++chunk) {
        int held = 0;
        int most = 0;
        for (const auto& action : schedule.actions[static_cast<std::size_t>(stage)]) {
          if (action.virtual_stage != chunk) continue;
          if (action.kind == ActionKind::forward) most = std::max(most, ++held);
          const bool ends =
              action.kind == ActionKind::backward || action.kind == ActionKind::backward_input;
          if (ends) --held;
        }
        CHECK(buffers[static_cast<std::size_t>(chunk)].activations == most);
      }
    }
  }
}
