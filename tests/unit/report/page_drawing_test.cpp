// SPDX-License-Identifier: Apache-2.0
// How a page is written: texts escaped, curves drawn.
#include "report/page/html.hpp"
#include "unit/report/page_parts.hpp"

#include <catch2/catch.hpp>

#include <cmath>

using namespace trireme;
using tests::between;
using tests::count;
using tests::data_of;
using tests::holds;
using tests::page_of;
using tests::train;

TEST_CASE("texts in a page are escaped, and markup is not") {
  CHECK(report::escaped("<a href=\"x\" b='y'>&</a>") ==
        "&lt;a href=&quot;x&quot; b=&#39;y&#39;&gt;&amp;&lt;/a&gt;");
  CHECK(report::escaped("a\x01\xff\nb") == "a\\x01\\xff\nb");
  CHECK(report::escaped("\n\n") == "\n\n");
  const std::string name = "<b>";
  const auto inner = report::markup("<i>{}</i>", name);
  CHECK(report::markup("{}{}{}", inner, 1.5, "&").text() == "<i>&lt;b&gt;</i>1.5&amp;");
}

TEST_CASE("no text of a run becomes markup or ends the page's data") {
  const std::string hostile = "</script><script>alert(1)</script><img src=x onerror=alert(2)>'\"&";
  const tests::HandMadeRuns runs;
  const std::string name = "<script>alert(0)<!--'\"&amp;";
  // As a member of JSON.
  const auto text = base::Json(hostile).dump();
  runs.configure(name, base::format("[train]\nsteps = {0} # {0}\n{0} = 1\n", hostile));
  runs.write(name, "metrics.jsonl",
             base::format("{{\"kind\":\"event\",\"event\":\"start\",\"step\":1,\"peak_flops\":1,"
                          "\"peak_source\":{0}}}\n"
                          "{{\"kind\":\"event\",\"event\":{0},\"step\":1}}\n"
                          "{{\"kind\":\"event\",\"event\":\"not saved\",\"why\":{0}}}\n"
                          "{{\"kind\":\"event\",\"event\":\"arenas\",\"planned_bytes\":{{{0}:5}},"
                          "\"used_bytes\":{{}}}}\n"
                          "{{\"kind\":\"train\",\"step\":1,\"loss\":2,\"mfu\":0.1,\"run\":{0}}}\n",
                          text));
  runs.write(name, "versions.json", base::format("{{{0}:{0}}}", text));
  runs.write(name, "failure.json", base::format("{{\"cause\":{0},\"host\":{0}}}", text));
  runs.write(name, "failure-1.json", base::format("{{\"cause\":{0}}}", text));
  runs.write(name, "log/r0000.txt",
             base::format("2026-11-21T09:37:34.123Z error   r0000/0001 n1 train: {}\n", hostile));
  runs.step("plain", 1, 2);
  for (const auto& page : {page_of(runs, {name}), page_of(runs, {name, "plain"})}) {
    // The page's own: its data and its program.
    CHECK(count(page, "<script") == 2);
    CHECK(count(page, "</script") == 2);
    CHECK_FALSE(holds(page, "<img src=x"));
    CHECK_FALSE(holds(page, "<!--"));
    CHECK(holds(page, "&lt;img src=x onerror=alert(2)&gt;"));
    CHECK(data_of(page)["runs"][0]["name"] == name);
  }
}

TEST_CASE("a page needs nothing but itself") {
  const tests::HandMadeRuns runs;
  train(runs, "a", 50);
  const auto page = page_of(runs, {"a"});
  // Names of XML are no addresses that are opened.
  auto rest = page;
  for (const std::string known : {"http://www.w3.org/2000/svg"}) {
    for (auto at = rest.find(known); at != std::string::npos; at = rest.find(known)) {
      rest.erase(at, known.size());
    }
  }
  for (const auto* outside : {"http:", "https:", "src=\"/", "url(", "@import", "<link", "fetch("}) {
    INFO(outside);
    CHECK_FALSE(holds(rest, outside));
  }
  CHECK(holds(page, "content=\"default-src &#39;none&#39;;"));
}

TEST_CASE("curves are drawn without the script, one line a run") {
  const tests::HandMadeRuns runs;
  train(runs, "a", 50);
  train(runs, "b", 80);
  const auto page = page_of(runs, {"a", "b"});
  for (const auto* curve : {"loss", "norm", "rate", "speed", "mfu"}) {
    const auto figure = between(page, base::format("data-curve=\"{}\"", curve), "</figure>");
    INFO(curve);
    CHECK(count(figure, "class=\"line\" d=\"M") == 2);
    CHECK(holds(figure, "aria-label="));
  }
  // No evaluation was made.
  CHECK_FALSE(holds(page, "data-curve=\"held_out\""));
  CHECK(count(page, "data-parts=") == 2);
  CHECK(holds(page, "Timeline of") == false);
}

TEST_CASE("a long run's page is as small as its columns, and keeps its peaks") {
  const tests::HandMadeRuns runs;
  train(runs, "a", 10'000);
  const auto page = page_of(runs, {"a"});
  CHECK(page.size() < std::size_t{600} << 10);
  const auto data = data_of(page);
  const auto& run = data["runs"][0];
  CHECK(run["x"]["step"].size() == 600);
  double highest = 0;
  for (const auto& value : run["curves"]["loss"]["high"]) {
    highest = std::max(highest, value.get<double>());
  }
  CHECK(highest == 77);
  CHECK(holds(page, "10000 steps share 600 columns"));
  train(runs, "b", 600);
  const auto exact = page_of(runs, {"b"});
  CHECK_FALSE(data_of(exact)["runs"][0]["curves"]["loss"].contains("high"));
  CHECK_FALSE(holds(exact, "share 600 columns"));
}

TEST_CASE("missing steps break the lines, and missing numbers are null") {
  const tests::HandMadeRuns runs;
  for (const int step : {1, 2, 5, 6}) runs.step("a", step, step);
  runs.write("a", "metrics.jsonl", "{\"kind\":\"train\",\"step\":7,\"loss\":null}\n");
  const auto page = page_of(runs, {"a"});
  const auto data = data_of(page);
  CHECK(data["runs"][0]["breaks"] == base::Json::parse("[1]"));
  CHECK(data["runs"][0]["curves"]["loss"]["mean"].back().is_null());
  const auto line =
      between(between(page, "data-curve=\"loss\"", "</figure>"), "class=\"line\" d=\"", "\"");
  CHECK(count(line, "M") == 2);
  CHECK(count(line, "L") == 2);
}

TEST_CASE("pictures mark where a later start of a run begins") {
  const tests::HandMadeRuns runs;
  for (const int step : {1, 2, 3, 4}) runs.step("a", step, step, ",\"step_ms\":5");
  // Steps 3 and 4 are done again, after a kill.
  for (const int step : {3, 4, 5}) {
    runs.step("a", step, step, ",\"step_ms\":9,\"restart\":1");
  }
  const auto page = page_of(runs, {"a"});
  CHECK(data_of(page)["runs"][0]["starts"] == base::Json::parse("[2]"));
  const auto loss = between(page, "data-curve=\"loss\"", "</figure>");
  CHECK(between(loss, "class=\"starts\" d=\"", "\"") == "M500.0 0V300");
  CHECK(holds(between(page, "data-parts=\"0\"", "</figure>"), "class=\"starts\""));
  for (const int step : {1, 2, 3}) runs.step("b", step, step);
  CHECK_FALSE(holds(page_of(runs, {"b"}), "class=\"starts\""));
}
