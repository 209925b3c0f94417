// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/svg.hpp"

#include <catch2/catch.hpp>

#include <sstream>

using namespace trireme::base;
using Catch::Matchers::Contains;

namespace {

constexpr TextStyle title{"title", 10, TextAnchor::start, true};
constexpr TextStyle middle{"middle", 10, TextAnchor::middle};
constexpr TextStyle number{"number", 10, TextAnchor::end};

struct Frame {
  double left = 0;
  double width = 0;
  double height = 0;
};

Frame frame_of(const std::string& document) {
  const std::string begin = "viewBox=\"";
  std::istringstream numbers(document.substr(document.find(begin) + begin.size()));
  Frame frame;
  double top = 1;
  numbers >> frame.left >> top >> frame.width >> frame.height;
  CHECK(top == 0);
  return frame;
}

Frame frame_with(double x, const TextStyle& style, const std::string& words) {
  SvgPicture picture;
  picture.text(x, 5, style, words);
  return frame_of(picture.document("t", 100, 50));
}

}  // namespace

TEST_CASE("a text is as wide as its letters in DejaVu Sans Bold, others as the widest") {
  CHECK(text_width("", 10) == 0);
  CHECK(text_width("iW", 1000) == 343 + 1103);
  CHECK(text_width("~ ", 500) == Approx((838 + 348) / 2.0));
  // One letter each, of two, three and four bytes.
  CHECK(text_width("ä", 100) == 125);
  CHECK(text_width("中", 100) == 125);
  CHECK(text_width("🙂", 100) == 125);
}

TEST_CASE("a picture keeps its size while its texts fit, and grows where one would end outside") {
  const std::string words(20, 'W');
  const double width = text_width(words, 10);
  const auto fits = frame_with(20, title, "W");
  CHECK(fits.left == 0);
  CHECK(fits.width == 100);
  CHECK(fits.height == 50);
  const auto right = frame_with(20, title, words);
  CHECK(right.left == 0);
  CHECK(right.width >= 20 + width);
  const auto left = frame_with(90, number, words);
  CHECK(left.left <= 90 - width);
  CHECK(left.left + left.width == Approx(102));
  const auto both = frame_with(50, middle, words);
  CHECK(both.left <= 50 - width / 2);
  CHECK(both.left + both.width >= 50 + width / 2);
}

TEST_CASE("a picture's texts are no markup, and its styles stand in it once") {
  SvgPicture picture;
  picture.add("<path d=\"M0 0\"/>\n");
  picture.text(1, 2.125, title, "<b>&\"'\x01\xff");
  picture.text(1, 2, title, "again");
  const auto document = picture.document("<t>", 100, 50, "<defs></defs>\n");
  CHECK_THAT(document, Contains("<title>&lt;t&gt;</title>"));
  CHECK_THAT(document,
             Contains("y=\"2.13\" class=\"title\">&lt;b&gt;&amp;&quot;&#39;\\x01\\xff</text>"));
  CHECK_THAT(document, Contains("<defs></defs>") && Contains("<path d=\"M0 0\"/>"));
  const auto rule = document.find(".title {");
  REQUIRE(rule != std::string::npos);
  CHECK(document.find(".title {", rule + 1) == std::string::npos);
}
