// SPDX-License-Identifier: Apache-2.0
#include "trireme/config/recompute.hpp"

#include "trireme/base/text.hpp"

#include <catch2/catch.hpp>

using namespace trireme;
using config::Activation;
using config::parse_recompute;
using config::Recompute;

namespace {

Recompute parsed(const std::vector<std::string>& entries) {
  const auto result = parse_recompute(entries);
  REQUIRE(result.ok());
  return *result;
}

std::string refusal(const std::vector<std::string>& entries) {
  const auto result = parse_recompute(entries);
  return result ? std::string{} : result.failure().text;
}

}  // namespace

TEST_CASE("sets of activations are read as they are written") {
  CHECK(parsed({"none"}) == Recompute{});
  CHECK(parsed({}) == Recompute{});
  CHECK(parsed({"norms", "activation"}) == Recompute{Activation::norms, Activation::activation});
  CHECK(parsed({"selective"}) == Recompute{Activation::attention});
  CHECK(parsed({"full"}) == Recompute{Activation::layer});
  for (const auto* text : {"none", "norms,activation", "attention,mlp,layer", "norms,layer:8"}) {
    std::vector<std::string> entries;
    for (const auto part : base::split(text, ',')) entries.emplace_back(part);
    CHECK(parsed(entries).text() == text);
  }
}

TEST_CASE("a kind with a number is computed again in so many first layers of a stage") {
  const auto recompute = parsed({"norms", "layer:2", "mlp:1"});
  for (const int layer : {0, 1, 2, 100}) {
    const auto set = recompute.in_layer(layer);
    CHECK(set.has(Activation::norms));
    CHECK(set.has(Activation::layer) == (layer < 2));
    CHECK(set.has(Activation::mlp) == (layer < 1));
    CHECK_FALSE(set.has(Activation::attention));
  }
  CHECK(Recompute{}.in_layer(0).empty());
  // Said twice, the larger number counts.
  CHECK(parsed({"layer:2", "layer:8", "layer:3"}) == Recompute{}.add(Activation::layer, 8));
}

TEST_CASE("what is no set of activations is refused with the entry and what to write") {
  CHECK(refusal({"norm"}).find("'norm'") != std::string::npos);
  CHECK(refusal({"norm"}).find("norms, activation, attention, mlp and layer") != std::string::npos);
  CHECK(refusal({"none", "norms"}).find("none alone") != std::string::npos);
  CHECK(refusal({"none:2"}).find("none alone") != std::string::npos);
  for (const auto* entry : {"layer:", "layer:0", "layer:-1", "layer:1.5", "layer:99999999999",
                            "layer:2:3", "layer: 2", ":2", "", "LAYER"}) {
    CAPTURE(entry);
    CHECK(refusal({entry}).find(entry) != std::string::npos);
  }
}
