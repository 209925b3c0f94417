// SPDX-License-Identifier: Apache-2.0
#include "trireme/inference/evaluate.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>
#include <string>

using namespace trireme;

TEST_CASE("an evaluation says nan, whatever sign the machine gave it") {
  inference::Evaluation evaluation;
  evaluation.tokens = 100;
  evaluation.loss = std::copysign(std::numeric_limits<double>::quiet_NaN(), -1.0);
  evaluation.bytes = 9;
  evaluation.seconds = 1.0;
  const auto answer = inference::text(evaluation);
  CHECK(answer.find("loss           nan nats") != std::string::npos);
  CHECK(answer.find("perplexity     nan\n") != std::string::npos);
  CHECK(answer.find("bits per byte  nan (9 bytes") != std::string::npos);
  CHECK(answer.find("-nan") == std::string::npos);
}
