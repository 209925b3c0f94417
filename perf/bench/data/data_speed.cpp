// SPDX-License-Identifier: Apache-2.0
// Speed of the data room on real text: bench_data_speed [TEXT]
// TEXT (a file or a folder, also gzipped) is Debian's dict-gcide unless given. Prints MB/s (10^6
// bytes of text a second of wall time) and, where one thread works, of its CPU time: on a shared
// machine only the latter can be compared between runs.
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/data/dataset.hpp"
#include "trireme/data/prepare.hpp"
#include "trireme/data/tokenizer_training.hpp"

#include <sys/resource.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>

namespace {

using namespace trireme;
using Clock = std::chrono::steady_clock;

double cpu_seconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

class Stopwatch {
 public:
  void print(const std::string& what, std::uint64_t bytes) const {
    const double wall = std::chrono::duration<double>(Clock::now() - start_).count();
    const double cpu = cpu_seconds() - cpu_start_;
    const double megabytes = static_cast<double>(bytes) * 1e-6;
    std::printf("%-34s %8.1f MB/s  %8.1f MB per CPU second  %7.2f s\n", what.c_str(),
                megabytes / wall, megabytes / cpu, wall);
    std::fflush(stdout);
  }

 private:
  Clock::time_point start_ = Clock::now();
  double cpu_start_ = cpu_seconds();
};

std::string with_kind(const char* what, data::PreTokenizerKind kind, int threads) {
  constexpr const char* names[] = {"gpt2", "llama3", "qwen2"};
  return base::format("{} {}, {} threads", what, names[static_cast<int>(kind)], threads);
}

data::Tokenizer bench_training(const data::DocumentSources& sources, data::PreTokenizerKind kind,
                               int threads) {
  data::TrainingOptions options;
  options.vocab_size = 8192;
  options.pre_tokenizer = kind;
  options.threads = threads;
  const Stopwatch watch;
  const auto trained = base::value_or_throw(data::train_tokenizer(sources, options));
  const auto& report = trained.report;
  watch.print(with_kind("train", kind, threads), report.text_bytes);
  const auto megabytes = static_cast<double>(report.text_bytes) * 1e-6;
  std::printf("    counted at %.1f MB/s; merged at %.1f MB/s (%llu distinct words)\n",
              megabytes / report.counting_seconds, megabytes / report.merging_seconds,
              static_cast<unsigned long long>(report.distinct_words));
  return trained.tokenizer;
}

void bench_prepare(const data::DocumentSources& sources, const data::Tokenizer& tokenizer,
                   const std::string& prefix, int threads) {
  data::PrepareOptions options;
  options.out = prefix;
  options.threads = threads;
  const Stopwatch watch;
  const auto report = base::value_or_throw(data::prepare(sources, tokenizer, options));
  watch.print(base::format("prepare, {} threads", threads),
              static_cast<std::uint64_t>(report.train.text_bytes));
}

void bench_tokens(const data::Tokenizer& tokenizer, const std::string& prefix) {
  data::DatasetOptions options;
  options.sequence_length = 1024;
  const auto dataset = base::value_or_throw(data::TokenDataset::open({prefix}, options));
  std::vector<std::int32_t> tokens(1025);
  constexpr std::uint64_t samples = 20'000;
  {
    const Stopwatch watch;
    for (std::uint64_t i = 0; i < samples; ++i) dataset.sample(i * 7919, tokens);
    watch.print("sample (bytes of int32 tokens)", samples * 4096);
  }
  std::vector<std::int32_t> ids(static_cast<std::size_t>(dataset.token_count()));
  dataset.sources().front().read(0, ids);
  std::string text;
  {
    const Stopwatch watch;
    text = tokenizer.decode(ids);
    watch.print("decode", text.size());
  }
  ids.clear();
  data::Tokenizer::Encoder encoder(tokenizer);
  const Stopwatch watch;
  encoder.encode(text, ids);
  watch.print("encode, 1 thread", text.size());
}

}  // namespace

int main(int argc, char** argv) {
  try {
    data::DocumentSources sources;
    sources.paths = {argc > 1 ? argv[1] : "/usr/share/dictd/gcide.dict.dz"};
    sources.separator = "blank-line";
    const auto folder =
        std::filesystem::temp_directory_path() / base::format("trireme-bench-{}", getpid());
    std::filesystem::create_directories(folder);
    const auto prefix = (folder / "tokens").string();
    using enum data::PreTokenizerKind;
    for (const auto kind : {gpt2, qwen2, llama3}) bench_training(sources, kind, 2);
    const auto tokenizer = bench_training(sources, llama3, 1);
    for (const int threads : {2, 1}) bench_prepare(sources, tokenizer, prefix, threads);
    bench_tokens(tokenizer, prefix);
    std::filesystem::remove_all(folder);
    return 0;
  } catch (const base::Error& error) {
    std::fprintf(stderr, "bench_data_speed: %s\n", error.what());
    return static_cast<int>(error.code());
  }
}
