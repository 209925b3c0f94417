#include "unit/checkpoint/support.hpp"

#include <catch2/catch.hpp>

using namespace trireme;
using namespace trireme::tests;

TEST_CASE("what one rank saves it loads bit for bit") {
  const ScratchFolder scratch;
  run_ranks(1, [&](comm::ProcessGroup& world) {
    Held large("model/w", {1000, 700}, device::DType::f32, layout::whole({1000, 700}));
    Held half("model/h", {300, 500}, device::DType::bf16, layout::whole({300, 500}));
    Held small("model/b", {700}, device::DType::bf16, layout::whole({700}));
    for (auto* held : {&large, &half, &small}) held->fill();
    const auto report = checkpoint::save({scratch.path() / "checkpoints",
                                          12,
                                          3456,
                                          "test",
                                          {{"cursor", 77}},
                                          {large.item, half.item, small.item}},
                                         world);
    CHECK(report.folder.filename() == "step-000000012");
    for (auto* held : {&large, &half, &small}) {
      std::fill(held->memory.begin(), held->memory.end(), std::byte{0xAB});
    }
    const auto loaded = checkpoint::load(
        report.folder, std::vector{large.wanted(), half.wanted(), small.wanted()}, world);
    CHECK(large.wrong_elements() == 0);
    CHECK(half.wrong_elements() == 0);
    CHECK(small.wrong_elements() == 0);
    CHECK(loaded.step == 12);
    CHECK(loaded.tokens == 3456);
    CHECK(loaded.state == base::Json{{"cursor", 77}});
    CHECK(checkpoint::verify(report.folder, checkpoint::VerifyLevel::full).good());
  });
}
