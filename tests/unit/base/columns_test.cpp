// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/columns.hpp"

#include "trireme/base/curve_text.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <limits>

using namespace trireme;
using base::Glyphs;
using base::Trend;

TEST_CASE("texts are wrapped at blanks, at slashes, and where there are none") {
  using Lines = std::vector<std::string>;
  CHECK(base::wrapped("one two three", 8) == Lines{"one two", "three"});
  CHECK(base::wrapped("/aaa/bbb/ccc", 8) == Lines{"/aaa/", "bbb/ccc"});
  CHECK(base::wrapped("aaaabbbbcc", 4) == Lines{"aaaa", "bbbb", "cc"});
  CHECK(base::wrapped("äöüäöü", 4) == Lines{"äöüä", "öü"});
  CHECK(base::wrapped("", 4) == Lines{""});
  CHECK(base::cut_to("äöüäöü", 4) == "…äöü");
  CHECK(base::cut_to("abcd", 4) == "abcd");
  CHECK(base::first_columns("äöü", 2) == "äö");
  CHECK(base::first_columns("äöü", 3) == "äöü");
  CHECK(base::first_columns("äöü", 0).empty());
}

TEST_CASE("a curve in a line goes from its lowest column to its highest") {
  const std::vector<double> rising{0, 1, 2, 3, 4, 5, 6, 7};
  CHECK(base::sparkline(rising, 8, Glyphs::unicode) == "▁▂▃▄▅▆▇█");
  CHECK(base::sparkline(rising, 20, Glyphs::unicode) == "▁▂▃▄▅▆▇█");
  // Means of two: 0.5, 2.5, 4.5, 6.5.
  CHECK(base::sparkline(rising, 4, Glyphs::unicode) == "▁▃▆█");
  CHECK(base::sparkline(rising, 5, Glyphs::ascii) == "_.-=^");
  CHECK(base::sparkline(std::vector<double>(3, 2.5), 8, Glyphs::unicode) == "▅▅▅");
  CHECK(base::sparkline({}, 8, Glyphs::unicode).empty());
  CHECK(base::sparkline(rising, 0, Glyphs::unicode).empty());
}

TEST_CASE("numbers that are not finite leave their columns to the others, or blank") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const double infinity = std::numeric_limits<double>::infinity();
  CHECK(base::sparkline(std::vector<double>{1, nan, 2, infinity, 3}, 5, Glyphs::ascii) == "_ - ^");
  CHECK(base::sparkline(std::vector<double>{1, infinity, 3, nan}, 2, Glyphs::ascii) == "_^");
  CHECK(base::sparkline(std::vector<double>{nan, nan}, 2, Glyphs::ascii) == "  ");
}

TEST_CASE("a bar is as full as its share, and never longer") {
  CHECK(base::bar(0.5, 4, Glyphs::ascii) == "##..");
  CHECK(base::bar(0.99, 4, Glyphs::ascii) == "###.");
  CHECK(base::bar(7, 4, Glyphs::ascii) == "####");
  CHECK(base::bar(-1, 4, Glyphs::ascii) == "....");
  CHECK(base::bar(std::nan(""), 2, Glyphs::ascii) == "..");
  CHECK(base::bar(1, 3, Glyphs::unicode) == "━━━");
}

TEST_CASE("a trend is what the newer half says beyond the noise of both") {
  std::vector<double> falling;
  std::vector<double> noisy;
  for (int at = 0; at < 40; ++at) {
    falling.push_back(4 - 0.01 * at + (at % 2 == 0 ? 0.02 : -0.02));
    noisy.push_back(4 - 0.0001 * at + (at % 2 == 0 ? 0.5 : -0.5));
  }
  CHECK(base::trend_of(falling) == Trend::falls);
  CHECK(base::trend_of(std::vector<double>(falling.rbegin(), falling.rend())) == Trend::rises);
  CHECK(base::trend_of(noisy) == Trend::level);
  CHECK(base::trend_of(std::vector<double>(20, 3.0)) == Trend::level);
  CHECK(base::trend_of(std::vector<double>{4, 3, 2, 1}) == Trend::unknown);
  falling.back() = std::numeric_limits<double>::quiet_NaN();
  CHECK(base::trend_of(falling) == Trend::unknown);
}
