// SPDX-License-Identifier: Apache-2.0
// usage: bench_save_plan [PIPELINE DATA TENSOR]
// What one rank spends to plan a save of Llama 3.1 405B, and rank 0 to write and read the manifest:
// seconds and the growth of resident memory. No payload is there.
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/checkpoint/manifest.hpp"
#include "trireme/engine/options.hpp"

#include "train/saving/saved_contents.hpp"

#include <malloc.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace {

using namespace trireme;

constexpr double mib = 1024.0 * 1024.0;

double number_in_status(const std::string& key) {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);) {
    if (line.starts_with(key)) return std::strtod(line.c_str() + key.size() + 1, nullptr) / 1024;
  }
  return 0;
}

/// Time and memory at its peak since the last mark.
class Mark {
 public:
  Mark() { reset(); }
  void print(const char* what) {
    const auto seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - start_).count();
    std::puts(base::format("{:<42} {:8.1f} ms  {:8.1f} MiB at most", what, 1e3 * seconds,
                           number_in_status("VmHWM:") - memory_)
                  .c_str());
    reset();
  }

 private:
  void reset() {
    ::malloc_trim(0);
    std::ofstream("/proc/self/clear_refs") << "5";
    memory_ = number_in_status("VmRSS:");
    start_ = std::chrono::steady_clock::now();
  }
  std::chrono::steady_clock::time_point start_;
  double memory_ = 0;
};

engine::EngineOptions options_of(int pipeline, int data, int tensor) {
  engine::EngineOptions options;
  auto& model = options.model;
  model.architecture = model::Architecture::llama;
  model.vocab_size = 128'256;
  model.hidden_size = 16'384;
  model.intermediate_size = 53'248;
  model.num_hidden_layers = 126;
  model.num_attention_heads = 128;
  model.num_key_value_heads = 8;
  model.head_dim = 128;
  options.sharding.mesh = layout::Mesh::of(pipeline, data, tensor);
  options.sharding.zero_level = 1;
  return options;
}

checkpoint::Manifest manifest_of(checkpoint::Contents contents, int ranks) {
  checkpoint::Manifest manifest;
  manifest.state = base::Json::object();
  for (int rank = 0; rank < ranks; ++rank) {
    manifest.files.push_back(
        {base::format("shard-{:05}.h5", rank), std::uint64_t{1} << 40, std::string(64, '0')});
  }
  manifest.contents = std::move(contents);
  return manifest;
}

void run(int pipeline, int data, int tensor) {
  const auto options = options_of(pipeline, data, tensor);
  // The first call touches code and pages that are there in a run.
  train::saved_contents(engine::sharding_of(options_of(1, 1, 1)));
  Mark mark;
  auto contents = train::saved_contents(engine::sharding_of(options));
  mark.print("every rank: contents");
  const auto hash = contents.hash();
  mark.print("every rank: their hash");
  auto text = checkpoint::manifest_text(
      manifest_of(std::move(contents), options.sharding.mesh.world_size()));
  mark.print("rank 0: the manifest's text");
  const auto read = base::value_or_throw(checkpoint::parse_manifest(text, "manifest.json"));
  mark.print("rank 0, and every rank that loads: read it");
  std::puts(base::format("{}: {} buckets, {} tensors, {:.2f} MiB of text, {}",
                         options.sharding.mesh.text(), read.contents.buckets.size(),
                         read.contents.tensors.size(), static_cast<double>(text.size()) / mib,
                         read.contents.hash() == hash ? "read as written" : "READ OTHERWISE")
                .c_str());
}

}  // namespace

int main(int argc, char** argv) {
  const auto degree = [&](int index, int otherwise) {
    return argc > index ? std::max(1, std::atoi(argv[index])) : otherwise;
  };
  try {
    run(degree(1, 16), degree(2, 32), degree(3, 8));
  } catch (const base::Error& error) {
    std::fputs((std::string(error.what()) + "\n").c_str(), stderr);
    return static_cast<int>(error.code());
  }
  return 0;
}
