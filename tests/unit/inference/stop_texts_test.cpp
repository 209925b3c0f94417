// SPDX-License-Identifier: Apache-2.0
#include "inference/stop_texts.hpp"

#include <catch2/catch.hpp>

using trireme::inference::StopTexts;

TEST_CASE("an answer ends before the first stop text, whichever that is") {
  const StopTexts stops({"\n\n", "END"});
  CHECK(stops.cut("one END two\n\n") == 4);
  CHECK(stops.cut("one\n\nEND") == 3);
  CHECK(stops.cut("one EN\n") == 7);
  CHECK(StopTexts({}).cut("one") == 3);
}

TEST_CASE("a stop text is found wherever tokens cut it") {
  const StopTexts stops({"stop here"});
  const std::string answer = "please stop here now";
  for (std::size_t cut = 0; cut <= answer.size(); ++cut) {
    INFO(cut);
    const auto before = answer.substr(0, cut);
    const bool earlier = stops.found(before, 0);
    CHECK(earlier == (cut >= 16));
    if (!earlier) CHECK(stops.found(answer, cut));
  }
  CHECK_FALSE(stops.found("please stop", 0));
}

TEST_CASE("what may become a stop text is held back, and nothing else") {
  const StopTexts stops({"END", "EE"});
  CHECK(stops.settled("a") == 1);
  CHECK(stops.settled("aE") == 1);
  CHECK(stops.settled("aEN") == 1);
  CHECK(stops.settled("aENx") == 4);
  CHECK(stops.settled("aEND and more") == 1);
  CHECK(stops.settled("E") == 0);
  CHECK(StopTexts({}).settled("aEN") == 3);
  // Nothing that was settled is taken back, whatever follows.
  const std::string answer = "aEbENcENDd";
  std::size_t before = 0;
  for (std::size_t size = 0; size <= answer.size(); ++size) {
    const auto now = stops.settled(answer.substr(0, size));
    CHECK(now >= before);
    before = now;
  }
  CHECK(before == 6);
}
