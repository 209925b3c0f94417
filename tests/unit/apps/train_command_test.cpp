// SPDX-License-Identifier: Apache-2.0
// `trireme train` as a plain process: a world of one.
#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/shell_word.hpp"
#include "trireme/device/kernels.hpp"

#include "support/temporary_folder.hpp"
#include "unit/apps/trireme_program.hpp"

#include <catch2/catch.hpp>

#include <ctime>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>

using namespace trireme;
using namespace trireme::tests;
namespace fs = std::filesystem;

namespace {

constexpr const char* tiny_configuration = TRIREME_SOURCE_DIR "/configs/debug-tiny.conf";

/// Three steps on a text of numbered lines, in `folder`/run.
void train_in(const fs::path& folder) {
  const auto text = folder / "text.txt";
  std::ofstream out(text);
  for (int line = 0; line < 400; ++line) out << "line " << line << " of a text\n";
  out.close();
  const auto tokenizer = (folder / "tokenizer.json").string();
  const auto prefix = (folder / "tokens").string();
  const std::vector<std::vector<std::string>> commands{
      {"tokenizer", "train", "--input", text.string(), "--vocab-size", "300", "--out", tokenizer},
      {"data", "prepare", "--input", text.string(), "--tokenizer", tokenizer, "--out", prefix},
      {"train", tiny_configuration, "--set", "data.train=" + prefix, "--set", "train.steps=3",
       "--set", "run.directory=" + (folder / "run").string(), "--set", "run.tags=quick, small"}};
  for (const auto& command : commands) {
    const auto end = run_trireme(command);
    INFO(command.front() << ": " << end.err);
    REQUIRE(end.exit_code == 0);
  }
}

/// The value of a field of /proc/cpuinfo, of the first processor.
std::string cpuinfo(const std::string& field) {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with(field)) return line.substr(line.find(": ") + 2);
  }
  return {};
}

std::set<std::string> words(const std::string& text) {
  std::istringstream stream(text);
  return {std::istream_iterator<std::string>(stream), {}};
}

}  // namespace

TEST_CASE("a run writes down what it ran with") {
  const TemporaryFolder folder;
  train_in(folder.path());
  const auto json =
      base::value_or_throw(base::read_json_file(folder.path() / "run" / "versions.json"));
  const auto said = run_trireme({"--version"}).out;
  CHECK(said.starts_with("trireme " + json.at("version").get<std::string>() + " (commit " +
                         json.at("commit").get<std::string>() + ")\n"));
  CHECK(contains(said, " by " + json.at("compiler").get<std::string>()));
  for (const auto* name : {"MPI", "HDF5", "hwloc", "oneDNN", "PCRE2", "zlib", "zstd", "OpenSSL"}) {
    INFO(name);
    const auto version = json.at("libraries").at(name).get<std::string>();
    CHECK(version.find_first_of("0123456789") != std::string::npos);
    CHECK(contains(said, version));
  }
  CHECK(json.at("libraries").at("MPI").get<std::string>().starts_with("Open MPI v"));
  CHECK(json.at("built_with").contains("CUDA"));
  CHECK(json.at("run").at("name") == "debug-tiny");
  CHECK(json.at("run").at("tags") == base::Json::array({"quick", "small"}));
}

TEST_CASE("a start, plan and config check say alike how often a run sees its data") {
  const TemporaryFolder folder;
  train_in(folder.path());
  const auto data_line = [](const std::string& text) {
    const auto at = text.find("data: ");
    return at == std::string::npos ? text : text.substr(at, text.find('\n', at) - at);
  };
  const std::vector<std::string> settings{
      "--set", "data.train=" + (folder.path() / "tokens").string(), "--set", "train.steps=3"};
  const auto said_by = [&](std::vector<std::string> words, const std::vector<std::string>& more) {
    words.emplace_back(tiny_configuration);
    words.insert(words.end(), settings.begin(), settings.end());
    words.insert(words.end(), more.begin(), more.end());
    words.insert(words.end(),
                 {"--set", "data.tokenizer=" + (folder.path() / "tokenizer.json").string(), "--set",
                  "run.directory=" + (folder.path() / "new").string()});
    return run_trireme(words);
  };
  const auto log =
      base::value_or_throw(base::read_text_file(folder.path() / "run" / "log" / "r0000.txt"));
  const auto line = data_line(log);
  CHECK(contains(line, " times in 3 steps of "));
  CHECK(data_line(said_by({"plan"}, {}).out) == line);
  CHECK(data_line(said_by({"config", "check"}, {}).out) == line);

  std::istringstream metrics(
      base::value_or_throw(base::read_text_file(folder.path() / "run" / "metrics.jsonl")));
  base::Json last;
  for (std::string text; std::getline(metrics, text);) {
    const auto json = base::Json::parse(text);
    if (json.at("kind") == "train") last = json;
  }
  // The third of three batches ends with the run's last sample.
  const auto samples = std::stod(line.substr(line.find(' ') + 1));
  CHECK(last.at("epochs") == last.at("first_sample").get<double>() / 2 * 3 / samples);
  const auto planned = base::Json::parse(said_by({"plan"}, {"--json"}).out);
  CHECK(planned.at("epochs") == last.at("epochs"));
  CHECK_FALSE(contains(log, "more than once"));

  const std::vector<std::string> large{"--set", "train.global_batch=512", "--set", "train.steps=1"};
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"config", "check"}, std::vector<std::string>{"train"}}) {
    const auto end = said_by(words, large);
    CHECK(end.exit_code == 0);
    CHECK(contains(end.err, "a batch of 512 sequences holds the same ones more than once"));
  }
  const auto absent = said_by({"plan"}, {"--set", "data.train=/absent"});
  CHECK(absent.exit_code == 0);
  CHECK_FALSE(contains(absent.out, "data: "));
}

TEST_CASE("without a GPU, a run on GPUs says what is missing and computes nothing") {
  if (device::make_cuda_kernels(0).ok()) return;  // Then tests/gpu has more to say.
  const TemporaryFolder folder;
  const std::string run = (folder.path() / "run").string();
  const auto end = run_trireme({"train", tiny_configuration, "--set", "run.directory=" + run,
                                "--set", "numerics.backend=cuda"});
  INFO(end.err);
  CHECK(end.exit_code == 4);
  CHECK(contains(end.err, device::make_cuda_kernels(0).failure().text));
  CHECK_FALSE(fs::exists(folder.path() / "run" / "metrics.jsonl"));
}

TEST_CASE("heads that no kernel of a GPU takes end a run before a GPU is looked for") {
  const TemporaryFolder folder;
  const std::string run = (folder.path() / "run").string();
  const auto end = run_trireme({"train", tiny_configuration, "--set", "run.directory=" + run,
                                "--set", "numerics.backend=cuda", "--set",
                                "numerics.precision=bf16", "--set", "model.head_dim=260"});
  INFO(end.err);
  CHECK(end.exit_code == 2);
  CHECK(contains(end.err, "model.head_dim = 260"));
  CHECK(contains(end.err, "set model.head_dim = 256"));
  CHECK_FALSE(fs::exists(run));
}

TEST_CASE("heads that do not divide, and no model at all, end train before a run is made") {
  const TemporaryFolder folder;
  const std::string run = "run.directory=" + (folder.path() / "run").string();
  const auto heads = run_trireme(
      {"train", tiny_configuration, "--set", run, "--set", "model.num_key_value_heads=3"});
  CHECK(heads.exit_code == 2);
  CHECK(contains(heads.err, "trireme: model.num_key_value_heads = 3 does not divide"));
  const auto none = run_trireme({"train", "--set", run});
  CHECK(none.exit_code == 2);
  CHECK(contains(none.err, "trireme: model.architecture is not given"));
  CHECK_FALSE(fs::exists(folder.path() / "run"));
}

TEST_CASE("a time limit that leaves no step is an error, and one that is past is none") {
  const TemporaryFolder folder;
  train_in(folder.path());
  const auto now = std::time(nullptr);
  const auto in_job = [&](std::time_t end) {
    auto start = trireme_start(
        {"train", tiny_configuration, "--set", "data.train=" + (folder.path() / "tokens").string(),
         "--set", "run.directory=" + (folder.path() / "run").string(), "--set", "train.steps=4"});
    start.environment["SLURM_JOB_ID"] = "77";
    start.environment["SLURM_JOB_END_TIME"] = std::to_string(end);
    return run_program(start);
  };
  const auto near = in_job(now + 50);
  INFO(near.err);
  CHECK(near.exit_code == 3);
  CHECK(contains(near.err, "the time limit of job 77 leaves no time for a step"));
  CHECK(contains(near.err, "run.signal_lead = auto"));
  const auto past = in_job(now - 100);
  INFO(past.err);
  CHECK(past.exit_code == 0);
  CHECK(contains(past.err, "the time limit of job 77 is past"));
}

TEST_CASE("staged groups are refused where nothing computes on a GPU") {
  const auto end = run_trireme({"train", tiny_configuration, "--set", "comm.backend=staged"});
  INFO(end.err);
  CHECK(end.exit_code == 2);
  CHECK(contains(end.err, "comm.backend"));
  CHECK(contains(end.err, "numerics.backend = cuda"));
}

TEST_CASE("a run writes down its CPU as the kernel knows it") {
  const TemporaryFolder folder;
  train_in(folder.path());
  const auto json =
      base::value_or_throw(base::read_json_file(folder.path() / "run" / "versions.json"));
  const auto& cpu = json.at("cpu");
  CHECK(cpu.at("model") == cpuinfo("model name"));
  const auto flags = words(cpuinfo("flags"));
  const auto found = cpu.at("instruction_sets").get<std::set<std::string>>();
  const std::vector<std::pair<std::string, std::string>> names{
      {"avx2", "avx2"},         {"fma", "fma"},
      {"avx512f", "avx512f"},   {"avx512bf16", "avx512_bf16"},
      {"amx-tile", "amx_tile"}, {"amx-bf16", "amx_bf16"}};
  for (const auto& [ours, the_kernels] : names) {
    INFO(ours);
    CHECK(found.contains(ours) == flags.contains(the_kernels));
  }
}

TEST_CASE("an answer ends its line before the log goes on") {
  const TemporaryFolder folder;
  train_in(folder.path());
  // Both streams in the order in which a terminal would have them.
  const auto end =
      run_program({.program = "/bin/sh",
                   .arguments = {"-c", "exec \"$0\" \"$@\" 2>&1", TRIREME_EXECUTABLE, "generate",
                                 "--weights", (folder.path() / "run").string(), "--tokenizer",
                                 (folder.path() / "tokenizer.json").string(), "--prompt", "line",
                                 "--max-tokens", "3"}});
  INFO(end.out);
  CHECK(end.exit_code == 0);
  const auto said = end.out.find("generate: 1 prompt of ");
  REQUIRE(said != std::string::npos);
  const auto begin = end.out.rfind('\n', said) + 1;
  // 12:34:56.789, and nothing of the answer before it.
  CHECK(end.out.compare(begin + 2, 1, ":") == 0);
  CHECK(end.out.compare(begin + 8, 1, ".") == 0);
}

TEST_CASE("a run to go on with has a name") {
  const std::vector<std::vector<std::string>> commands{
      {"train", "--resume", ""}, {"config", "check", "--resume", ""}, {"train", "--resume="}};
  for (const auto& command : commands) {
    const auto end = run_trireme(command);
    INFO(end.err);
    CHECK(end.exit_code == 2);
    CHECK(contains(end.err, "--resume"));
  }
}

TEST_CASE("a folder in a run is not the run to go on with, and the run is named") {
  const tests::TemporaryFolder folder;
  for (const std::string name : {"r", "r 2"}) {
    const auto run = folder.path() / name;
    const auto step = run / "checkpoints" / "step-000000001";
    std::filesystem::create_directories(step);
    std::ofstream(run / "config.resolved.conf") << "[train]\nsteps = 1\n";
    for (const auto& named : {step.parent_path(), step}) {
      const auto end = run_trireme({"train", "--resume", named.string()});
      CHECK(end.exit_code == 2);
      CHECK(contains(end.err, "write --resume " + base::shell_word(run.string()) + "\n"));
    }
  }
}

TEST_CASE(
    "the parent of ranks tells a signal from an exit code of mpirun's, and notes the signal") {
  const TemporaryFolder folder;
  train_in(folder.path());
  const auto run = folder.path() / "run";
  const auto end_with = [&](const std::string& code) {
    const auto launcher = folder.write("bin/mpirun", "#!/bin/sh\nexit " + code + "\n");
    fs::permissions(launcher, fs::perms::owner_all);
    auto start = trireme_start({"train", "--resume", run.string(), "--ranks", "1"});
    start.environment["PATH"] = launcher.parent_path().string() + ":/usr/bin:/bin";
    return run_program(start);
  };
  const auto unknown = end_with("213");
  CHECK(unknown.exit_code == 3);
  CHECK(contains(unknown.err, "mpirun ended with 213"));
  CHECK_FALSE(fs::exists(run / "failure.json"));
  const auto killed = end_with("137");
  CHECK(killed.exit_code == 5);
  CHECK(contains(killed.err, "a rank was ended by signal SIGKILL"));
  CHECK(contains(run_trireme({"why", run.string()}).out, "SIGKILL"));
}
