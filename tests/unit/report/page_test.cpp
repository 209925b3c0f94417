// SPDX-License-Identifier: Apache-2.0
#include "trireme/report/page.hpp"

#include "trireme/record/run_placement.hpp"

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
