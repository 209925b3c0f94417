// SPDX-License-Identifier: Apache-2.0
#include "trireme/report/page.hpp"

#include "trireme/record/run_placement.hpp"

#include "report/page/html.hpp"
#include "unit/report/hand_made_run.hpp"

#include <catch2/catch.hpp>

#include <cmath>

using namespace trireme;
using tests::holds;

namespace {

std::string page_of(const tests::HandMadeRuns& runs, const std::vector<std::string>& names) {
  std::vector<std::filesystem::path> paths;
  for (const auto& name : names) paths.push_back(runs.path(name));
  return report::page(base::value_or_throw(report::read_runs(paths)), {"trireme 0", "now"});
}

/// Text between two others.
std::string between(const std::string& text, const std::string& begin, const std::string& end) {
  const auto first = text.find(begin);
  REQUIRE(first != std::string::npos);
  const auto from = first + begin.size();
  return text.substr(from, text.find(end, from) - from);
}

base::Json data_of(const std::string& page) {
  return base::Json::parse(
      between(page, "<script type=\"application/json\" id=\"data\">", "</script>"));
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

/// A run of so many steps whose loss falls and whose step 100 has a peak.
void train(const tests::HandMadeRuns& runs, const std::string& name, int steps) {
  runs.configure(name,
                 "[train]\nsteps = 100 # --set\nseed = 1 # default\n[parallel]\ntensor = 1\n"
                 "pipeline = 2\ndata = 1\nschedule = 1f1b\nvirtual_stages = 1\n");
  runs.start(name);
  std::string lines;
  for (int step = 1; step <= steps; ++step) {
    lines += base::format(
        "{{\"kind\":\"train\",\"step\":{},\"loss\":{},\"grad_norm\":1.5,\"learning_rate\":0.001,"
        "\"tokens\":{},\"step_ms\":10,\"tokens_per_second\":5000,\"mfu\":0.25,"
        "\"exposed_comm_ms\":2,\"bubble_ms\":1,\"time\":\"2026-11-21T09:37:30.000Z\"}}\n",
        step, step == 100 ? 77.0 : 3 + 1.0 / step, step * 64);
  }
  runs.write(name, "metrics.jsonl", lines);
}

}  // namespace

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

TEST_CASE("a page tells memory, layout, history, configuration and versions") {
  const tests::HandMadeRuns runs;
  train(runs, "a", 20);
  runs.write("a", "config.resolved.conf", "[train]\nmicro_batch = 1\nglobal_batch = 4\n");
  runs.write(
      "a", "metrics.jsonl",
      "{\"kind\":\"event\",\"event\":\"arenas\",\"step\":1,\"planned_bytes\":{\"parameters\":"
      "2048,\"batch\":1024},\"used_bytes\":{\"parameters\":1536,\"batch\":1024}}\n");
  runs.write("a", "versions.json", R"({"version":"9.9","built_with":{"MPI":"3.1"}})");
  runs.write("a", "failure-1.json",
             R"({"cause":"a node died","exit_code":5,"time":"2026-11-21T09:37:31Z"})");
  const auto page = page_of(runs, {"a"});
  const auto memory = between(page, "id=\"memory\"", "</section>");
  CHECK(holds(memory, "<td>2.00 KiB</td><td>1.50 KiB</td>"));
  CHECK(holds(memory, "<td>3.00 KiB</td><td>2.50 KiB</td>"));
  const auto layout = between(page, "id=\"layout\"", "</section>");
  CHECK(holds(layout, "pp2 x dp1 x tp1: 2 ranks"));
  CHECK(holds(layout, "Timeline of 4 micro-batches over 2 stages"));
  CHECK(holds(layout, "data:image/svg+xml,%3Csvg"));
  const auto history = between(page, "id=\"history\"", "</section>");
  CHECK(holds(history, "failed, exit code 5</td><td data-title=\"what\">a node died</td>"));
  CHECK(holds(history, "<span><b>progress     </b>step 20"));
  const auto configuration = between(page, "id=\"configuration\"", "</section>");
  CHECK(holds(configuration, "<code>100</code></td><td data-title=\"origin\">--set</td>"));
  CHECK(holds(configuration, "defaults"));
  CHECK(holds(between(page, "id=\"versions\"", "</section>"), "built_with.MPI</th><td>3.1</td>"));
}

TEST_CASE("a page shows samples as they are, the newest first") {
  const tests::HandMadeRuns runs;
  train(runs, "a", 20);
  CHECK_FALSE(holds(page_of(runs, {"a"}), "id=\"samples\""));
  for (const int step : {10, 20}) {
    runs.write("a", "metrics.jsonl",
               base::format("{{\"kind\":\"sample\",\"step\":{0},\"temperature\":0,\"samples\":["
                            "{{\"prompt\":\"one <b>\",\"text\":\" at\\n{0}\",\"ending\":\"stop\"}},"
                            "{{\"prompt\":\"two\",\"text\":\"{1}\",\"ending\":\"length\"}}]}}\n",
                            step, std::string(100'000, 'x')));
  }
  const auto page = page_of(runs, {"a"});
  const auto samples = between(page, "id=\"samples\"", "</section>");
  CHECK(holds(samples, "<b>one &lt;b&gt;</b> at\n20</li>"));
  CHECK(samples.find("after step 20") < samples.find("after step 10"));
  CHECK(holds(samples, "<details><summary>after step 10</summary>"));
  CHECK(holds(samples, "<b>two</b>xxx"));
  CHECK(samples.size() < 20'000);
}

namespace {

/// The text as it stood before each line became an element with its name in another.
std::string lines_of(std::string told) {
  for (const auto& [markup, text] : {std::pair("<span>", ""), std::pair("</span>", "\n"),
                                     std::pair("<b>", ""), std::pair("</b>", "")}) {
    for (auto at = told.find(markup); at != std::string::npos; at = told.find(markup, at)) {
      told.replace(at, std::string(markup).size(), text);
    }
  }
  return told;
}

}  // namespace

TEST_CASE("a failed run's page begins with its cause") {
  const tests::HandMadeRuns runs;
  train(runs, "a", 20);
  runs.write(
      "a", "failure.json",
      R"({"cause":"rank 1 died <at once>","exit_code":5,"first_failing_rank":1,"host":"n1"})");
  train(runs, "b", 20);
  runs.event("b", "done", 20);
  const auto page = page_of(runs, {"a"});
  const auto told = between(page, "<main>\n<section id=\"cause\">", "</section>");
  CHECK(holds(lines_of(told), report::escaped(postmortem::text_of(runs.view("a").postmortem))));
  CHECK(holds(told, "rank 1 died &lt;at once&gt;"));
  // It is said once.
  CHECK_FALSE(holds(page, "What trireme why says"));
  // The one of several runs that failed is named.
  const auto both = page_of(runs, {"a", "b"});
  const auto causes = between(both, "<main>\n<section id=\"cause\">", "</section>");
  CHECK(holds(causes, "<h3>a</h3>"));
  CHECK_FALSE(holds(causes, "<h3>b</h3>"));
  const auto good = page_of(runs, {"b"});
  CHECK_FALSE(holds(good, "id=\"cause\""));
  CHECK(holds(good, "What trireme why says"));
}

namespace {

/// A placement.json of nodes of four ranks on two NUMA nodes.
std::string placement_of(int nodes) {
  record::RunPlacement placement{layout::Mesh::of(nodes, 1, 4), {}};
  for (int rank = 0; rank < 4 * nodes; ++rank) {
    placement.ranks.push_back({base::format("<n{}>", rank / 4),
                               {rank % 4 / 2},
                               base::format("{}", rank % 4),
                               1,
                               base::format("0000:{}0:00.0", rank % 4)});
  }
  return record::to_json(placement).dump();
}

}  // namespace

TEST_CASE("a page shows which rank computes where") {
  const tests::HandMadeRuns runs;
  train(runs, "a", 20);
  CHECK_FALSE(holds(page_of(runs, {"a"}), "id=\"placement\""));
  runs.write("a", "placement.json", placement_of(2));
  const auto placement = between(page_of(runs, {"a"}), "id=\"placement\"", "</section>");
  CHECK(count(placement, "<h4>") == 2);
  CHECK(holds(placement, "<h4>&lt;n1&gt;</h4>"));
  CHECK(count(placement, "<span>NUMA 1</span>") == 2);
  CHECK(
      holds(placement,
            "<div class=\"rank s1\"><b>6</b> pp 1 · tp 2<small>CPUs 2 · GPU 0000:20:00.0</small>"));
  CHECK(holds(placement, "4-7</td><td data-title=\"coordinates\">pp 1, tp 0-3</td>"));
  runs.write("b", "placement.json", "{\"ranks\": 3}");
  train(runs, "b", 20);
  CHECK_FALSE(holds(page_of(runs, {"b"}), "id=\"placement\""));
}

TEST_CASE("a page of very many ranks shows the first and counts the others") {
  const tests::HandMadeRuns runs;
  train(runs, "a", 20);
  runs.write("a", "placement.json", placement_of(2500));
  const auto placement = between(page_of(runs, {"a"}), "id=\"placement\"", "</section>");
  CHECK(count(placement, "class=\"rank") == 64);
  CHECK(holds(placement, "The first 16 of 2500 nodes."));
  CHECK(holds(placement, "and 2244 more nodes"));
  CHECK(placement.size() < std::size_t{64} << 10);
}

TEST_CASE("the page's figures and findings are there for programs") {
  const tests::HandMadeRuns runs;
  // Two of ten milliseconds are exposed reductions: one finding.
  train(runs, "a", 200);
  runs.write("a", "placement.json", placement_of(2));
  runs.write("a", "failure.json", R"({"cause":"rank 1 died","exit_code":5})");
  runs.write("a", "metrics.jsonl",
             R"({"kind":"sample","step":200,"temperature":0.5,"samples":)"
             R"([{"prompt":"p","text":"t","ending":"length"}]})"
             "\n");
  runs.start("b");
  const std::vector<std::filesystem::path> paths{runs.path("a"), runs.path("b")};
  const auto views = base::value_or_throw(report::read_runs(paths));
  const auto json = report::page_json(views, {"trireme 0", "now"});
  // As a program reads it.
  const auto read = base::Json::parse(json.dump());
  CHECK(read["made_by"] == "trireme 0");
  CHECK(read["time"] == "now");
  const auto& first = read["runs"][0];
  CHECK(first["run"] == "a");
  CHECK(first["state"] == "failed");
  CHECK(first["step"] == 200);
  CHECK(first["tokens_per_second"] == 5000);
  CHECK(first["cause"]["cause"]["text"] == "rank 1 died");
  CHECK(first["findings"].size() == 1);
  CHECK(first["findings"][0]["rule"] == "gradients");
  CHECK(holds(first["findings"][0]["text"].get<std::string>(), "20 % of a step"));
  CHECK(first["mean_step"]["steady_steps"] == 195);
  CHECK(first["mean_step"]["parts_ms"]["gradient reduction"] == 2);
  CHECK(first["mean_step"]["parts_ms"]["compute"] == 7);
  CHECK(first["mean_step"]["gradient_bytes"].is_null());
  CHECK(first["samples"]["texts"][0]["text"] == "t");
  CHECK(first["placement"]["ranks"] == 8);
  CHECK(read["differences"].size() > 1);
  const auto& second = read["runs"][1];
  CHECK(second["findings"].empty());
  for (const auto* absent : {"cause", "samples", "placement", "loss"}) {
    CHECK(second[absent].is_null());
  }
}

TEST_CASE("a run of a single step has no pictures of it") {
  const tests::HandMadeRuns runs;
  train(runs, "a", 1);
  CHECK_FALSE(holds(page_of(runs, {"a"}), "<figure"));
  train(runs, "b", 2);
  CHECK(holds(page_of(runs, {"a", "b"}), "data-parts=\"1\""));
}

TEST_CASE("a run that has done nothing yet has a page, too") {
  const tests::HandMadeRuns runs;
  runs.configure("a", "[train]\nsteps = 5\n");
  const auto page = page_of(runs, {"a"});
  CHECK(holds(page, "0/5"));
  CHECK_FALSE(holds(page, "<figure"));
  CHECK(data_of(page)["runs"].size() == 1);
}
