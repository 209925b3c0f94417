// SPDX-License-Identifier: Apache-2.0
#include "trireme/plan/layout_choice.hpp"

#include "small_model.hpp"

#include <catch2/catch.hpp>

using namespace trireme;
using namespace trireme::plan;

namespace {

LayoutChoice interleaved_choice() {
  LayoutChoice choice;
  choice.ranks = 64;
  choice.tensor = 4;
  choice.pipeline = 8;
  choice.virtual_stages = 2;
  choice.schedule = layout::ScheduleKind::interleaved;
  choice.micro_batch = 2;
  choice.sequence = true;
  choice.zero_level = 1;
  choice.recompute = {config::Activation::norms, config::Activation::activation};
  return choice;
}

bool matches(const std::string& text, const LayoutChoice& choice) {
  const auto filter = LayoutFilter::parse(text);
  INFO((filter ? "" : filter.failure().text));
  REQUIRE(filter.ok());
  return filter->matches(choice);
}

}  // namespace

TEST_CASE("a layout's words name it and find it") {
  const auto choice = interleaved_choice();
  CHECK(text(choice) ==
        "tp=4,pp=8,dp=2,v=2,schedule=interleaved,mbs=2,sp=true,zero=1,again=norms+activation");
  CHECK(text(LayoutChoice{}) == "tp=1,pp=1,dp=1,mbs=1");
  CHECK(matches(text(choice), choice));
  CHECK(matches(" tp=4, pp=8", choice));
  CHECK_FALSE(matches("tp=4,pp=4", choice));
  CHECK_FALSE(matches("again=none", choice));
  CHECK(LayoutFilter::parse("again=none,tp=4")->matches_arrangement(choice));
  CHECK_FALSE(LayoutFilter::parse("again=none,tp=2")->matches_arrangement(choice));
}

TEST_CASE("what is no layout is refused by its word") {
  for (const auto* wrong : {"", "tp", "tensor=4", "tp=4,,pp=2", "tp=4;pp=2,x=1"}) {
    const auto filter = LayoutFilter::parse(wrong);
    CAPTURE(wrong);
    REQUIRE_FALSE(filter.ok());
    CHECK(filter.failure().code == base::ExitCode::usage);
    CHECK_THAT(filter.failure().text, Catch::StartsWith("--why: "));
  }
  CHECK_THAT(LayoutFilter::parse("tensor=4").failure().text, Catch::Contains("tensor=4"));
}

TEST_CASE("settings of a layout replace those of a configuration, and leave the rest") {
  const auto config = tests::small_config({"parallel.data=1", "train.seed=7"});
  const auto keys = with_layout(config.options(), interleaved_choice());
  CHECK(keys.parallel.tensor == 4);
  CHECK_FALSE(keys.parallel.data.has_value());
  CHECK(keys.train.activation_checkpointing == std::vector<std::string>{"norms", "activation"});
  CHECK(keys.train.seed == 7);
  const auto lines = settings_text(interleaved_choice(), config.options());
  CHECK(lines ==
        "[parallel]\ntensor = 4\npipeline = 8\nvirtual_stages = 2\nschedule = interleaved\n"
        "sequence = true\nzero_level = 1\ndata = auto\n[train]\nmicro_batch = 2\n"
        "activation_checkpointing = norms,activation\n");
}

TEST_CASE("layouts differ in what their settings say") {
  const auto choice = interleaved_choice();
  auto other = choice;
  CHECK(settings_changed(choice, other) == 0);
  CHECK(differences(choice, other).empty());
  other.tensor = 2;
  other.recompute = {};
  CHECK(settings_changed(choice, other) == 2);
  CHECK(differences(choice, other) == std::vector<std::string>{"tp=2", "again=none"});
  CHECK(choice.order() != other.order());
}
