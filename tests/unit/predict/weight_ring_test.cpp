// SPDX-License-Identifier: Apache-2.0
#include "predict/weight_ring.hpp"

#include "trireme/predict/step.hpp"

#include "machines.hpp"
#include "time_text.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

using namespace trireme;
using namespace trireme::predict;

namespace {

/// A table, layers and a head, that take 100, 1, 2, ... and 200 to gather. Layers take turns in two
/// parts of the ring, the table and the head behind them.
struct RingOfLayers {
  std::vector<RingPlace> places{{{{20, 30, Time(100)}}}};
  std::vector<PlaceReading> readings{{0, false}};

  explicit RingOfLayers(int layers) {
    for (int layer = 0; layer < layers; ++layer) {
      readings.push_back({places.size(), true});
      const double begin = layer % 2 * 10;
      places.push_back({{{begin, begin + 10, Time(layer + 1)}}, true});
    }
    readings.push_back({places.size(), false});
    places.push_back({{{20, 30, Time(200)}}});
  }
};

/// Text of a turn: "own 100, ahead 1" or "waits".
std::string text_of(const PlaceTurn& turn) {
  std::string text;
  const auto number = [](Time time) {
    return std::to_string(static_cast<std::int64_t>(time.count()));
  };
  if (turn.own > Time::zero()) text += "own " + number(turn.own) + " ";
  if (turn.waits) text += "waits ";
  if (turn.ahead > Time::zero()) text += "ahead " + number(turn.ahead) + " ";
  return text;
}

std::vector<std::string> texts_of(const std::vector<std::vector<PlaceTurn>>& turns) {
  std::vector<std::string> texts;
  for (const auto& action : turns) {
    for (const auto& turn : action) texts.push_back(text_of(turn));
  }
  return texts;
}

}  // namespace

TEST_CASE("units that take all micro-batches in turn are gathered once a pass, one ahead") {
  const RingOfLayers ring(4);
  std::vector<std::vector<PlaceReading>> chunks;
  for (const auto& reading : ring.readings) chunks.push_back({reading});
  const auto schedule = layout::breadth_first(6, 2);
  const auto texts = texts_of(place_turns(schedule.actions.front(), ring.places, chunks));
  const std::vector<std::string> expected{"own 100 ahead 1 ",
                                          "",  // the table
                                          "waits ahead 2 ",
                                          "",  // four layers
                                          "waits ahead 3 ",
                                          "",  //
                                          "waits ahead 4 ",
                                          "",  //
                                          "waits ahead 200 ",
                                          "",  //
                                          "waits ",
                                          "",  // the head
                                          "",
                                          "",  // back: the head reads nothing again
                                          "",
                                          "",  // the last two layers are there
                                          "ahead 2 ",
                                          "",  // the slot of the fourth is free
                                          "waits ahead 1 ",
                                          "",  //
                                          "waits ",
                                          "",  //
                                          "",
                                          ""};  // nor does the table
  CHECK(texts == expected);
}

TEST_CASE("blocks of a vocabulary that lie over the layers come where no layer is read") {
  const auto blocks = [](int first) {
    return RingPlace{{{0, 8, Time(first)}, {8, 16, Time(first + 1)}, {16, 24, Time(first + 2)}}};
  };
  const std::vector<RingPlace> places{
      blocks(100), {{{10, 20, Time(1)}}, true}, {{{0, 10, Time(2)}}, true}, blocks(200)};
  const auto schedule = layout::breadth_first(4, 1);
  const std::vector<std::vector<PlaceReading>> chunks{
      {{0, false}}, {{1, true}}, {{2, true}}, {{3, false}}};
  const auto texts = texts_of(place_turns(schedule.actions.front(), places, chunks));
  const std::vector<std::string> expected{"own 303 ",          // the table, under all of the layers
                                          "own 1 ahead 2 ",    //
                                          "waits ahead 202 ",  // the block behind the last layer
                                          "own 401 ",          // the head's others
                                          "",                  // back: it reads nothing again
                                          "own 2 ahead 1 ",    // the head lay over the last layers
                                          "waits ",            //
                                          ""};
  CHECK(texts == expected);
}

TEST_CASE("a backward behind its forward finds the last two layers where they are") {
  const RingOfLayers ring(3);
  const auto schedule =
      *layout::make_schedule(layout::ScheduleKind::one_forward_one_backward, 1, 1, 1);
  const auto turns = place_turns(schedule.actions.front(), ring.places, {ring.readings});
  CHECK(texts_of({turns[0]}) == std::vector<std::string>{"own 100 ahead 1 ", "waits ahead 2 ",
                                                         "waits ahead 3 ", "waits ahead 200 ",
                                                         "waits "});
  CHECK(texts_of({turns[1]}) == std::vector<std::string>{"", "", "ahead 1 ", "waits ", ""});
}

TEST_CASE("divided parameters cost a step less where units take all micro-batches in turn") {
  auto workload = tests::small_workload();
  workload.degrees.data = 4;
  workload.micro_batches.count = 8;
  workload.program.sharding = Sharding::parameters;
  const auto machine = tests::plain_machine();
  const auto in_turn = *predict_step(machine, workload);
  workload.program.gathers_into_ring = false;
  const auto each_pass = *predict_step(machine, workload);
  CHECK(in_turn.total() < each_pass.total());
  CHECK(in_turn.parts[Part::data] > Time::zero());
}
