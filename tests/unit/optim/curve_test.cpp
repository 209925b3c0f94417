// SPDX-License-Identifier: Apache-2.0
#include "trireme/optim/curve.hpp"

#include <catch2/catch.hpp>

using namespace trireme::optim;

namespace {

Curve curve(CurveKind kind) {
  return {kind, 1e-3, 1e-4, 10, 20, 110};
}

}  // namespace

TEST_CASE("the learning rate warms up in a straight line and reaches its peak") {
  for (const auto kind :
       {CurveKind::constant, CurveKind::cosine, CurveKind::linear, CurveKind::wsd}) {
    CHECK(curve(kind).at(1) == Approx(1e-4));
    CHECK(curve(kind).at(5) == Approx(5e-4));
    CHECK(curve(kind).at(10) == Approx(1e-3));
  }
}

TEST_CASE("every curve but the constant ends at its minimum and stays there") {
  CHECK(curve(CurveKind::constant).at(110) == Approx(1e-3));
  for (const auto kind : {CurveKind::cosine, CurveKind::linear, CurveKind::wsd}) {
    CHECK(curve(kind).at(110) == Approx(1e-4));
    CHECK(curve(kind).at(200) == Approx(1e-4));
  }
}

TEST_CASE("half way, cosine and linear are half way, and wsd has not begun to fall") {
  CHECK(curve(CurveKind::cosine).at(60) == Approx(5.5e-4));
  CHECK(curve(CurveKind::linear).at(60) == Approx(5.5e-4));
  CHECK(curve(CurveKind::cosine).at(35) == Approx(1e-4 + 9e-4 * 0.8535533906));
  CHECK(curve(CurveKind::wsd).at(90) == Approx(1e-3));
  CHECK(curve(CurveKind::wsd).at(100) == Approx(5.5e-4));
}

TEST_CASE("without warm-up the first step has the peak") {
  Curve plain = curve(CurveKind::linear);
  plain.warmup_steps = 0;
  CHECK(plain.at(1) < 1e-3);
  CHECK(plain.at(1) > 9.9e-4);
}
