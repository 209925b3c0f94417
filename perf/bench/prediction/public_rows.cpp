// SPDX-License-Identifier: Apache-2.0
#include "public_rows.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/predict/step.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <functional>

namespace trireme::perf {
namespace {

using predict::Machine;
using predict::Precision;
using predict::Program;
using predict::Sharding;
using predict::TensorOverlap;
using predict::Workload;

/// Habits of a program, by the notes of its rows and its documentation.
struct Software {
  std::string_view source;
  std::string_view name;
  Program program;
};

/// Calls of a program in Python around an action, about as many as a layer's forward has.
constexpr int python_calls = 25;

/// Seconds of a launch: a PyTorch program issues some 80,000 operations a second.
constexpr double python_gap = 12e-6;

Program fsdp() {
  Program program;
  program.launch_gap = python_gap;
  program.tensor_overlap = TensorOverlap::none;
  program.gathers_into_ring = false;
  program.fp8_backward = true;
  program.fused_passes = false;
  program.head_backward_in_forward = false;
  program.recomputes_last_product = true;
  program.update_bytes = 70;  // one kernel an operation of the rule
  program.loss_bytes = 20;    // logits in fp32, loss and gradient apart
  program.launches = 32;
  program.action_launches = python_calls;
  return program;
}

Program nemo() {
  Program program;
  program.launch_gap = python_gap;
  program.fp8_backward = true;
  program.sequence_parallel = true;
  program.gathers_rows_again = false;
  program.tensor_overlap = TensorOverlap::pieces;
  program.head_backward_in_forward = false;
  program.recomputes_last_product = true;
  program.gradient_bytes = 2;
  program.action_launches = python_calls;
  return program;
}

Program megatron_core() {
  auto program = nemo();
  program.tensor_overlap = TensorOverlap::none;
  program.overlaps_messages = false;
  program.gradient_bytes = 4;
  return program;
}

/// Before FlashAttention: scores in memory.
Program megatron_2022() {
  auto program = megatron_core();
  program.fused_attention = false;
  program.overlaps_data = false;
  program.overlaps_gathers = false;
  program.loss_bytes = 16;
  return program;
}

Program megatron_deepspeed() {
  auto program = megatron_2022();
  program.sequence_parallel = false;
  program.gradient_bytes = 2;
  program.update_bytes = 40;
  return program;
}

const std::vector<Software>& known_software() {
  static const std::vector<Software> list{
      {"mosaicml/llm-foundry", "llm-foundry (FSDP)", fsdp()},
      {"NVIDIA/dgxc-benchmarking", "NeMo", nemo()},
      {"MooreThreads/SimuMax", "Megatron-LM", megatron_core()},
      {"arXiv 2205.05198", "Megatron-LM 2022", megatron_2022()},
      {"VIA-Research/vTrain", "Megatron-DeepSpeed", megatron_deepspeed()},
      {"NVIDIA-NeMo/Megatron-Bridge", "NeMo", nemo()},
      {"pytorch/torchtitan", "torchtitan (FSDP)", fsdp()},
      {"foundation-model-stack/fms-fsdp", "fms-fsdp", fsdp()},
  };
  return list;
}

std::int64_t number(const CsvLine& line, const std::string& column, std::int64_t otherwise) {
  const auto found = line.find(column);
  if (found == line.end() || found->second.empty()) return otherwise;
  return static_cast<std::int64_t>(std::strtod(found->second.c_str(), nullptr));
}

int degree(const CsvLine& line, const std::string& column) {
  return static_cast<int>(std::max<std::int64_t>(1, number(line, column, 1)));
}

bool has(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

/// The node that a row's GPUs are in, where it is not the file's.
std::optional<Machine> machine_of(const CsvLine& line, const std::filesystem::path& folder) {
  const auto& gpu = line.at("gpu");
  // Behind the name stands the memory: a100-40.
  constexpr std::array<std::pair<std::string_view, std::string_view>, 5> files{
      {{"a100", "dgx-a100"},
       {"h100", "dgx-h100"},
       {"h200", "dgx-h200"},
       {"b200", "dgx-b200"},
       {"gb200", "gb200-nvl72"}}};
  const auto name = gpu.substr(0, gpu.find('-'));
  const auto* const file = std::find_if(files.begin(), files.end(),
                                        [&](const auto& each) { return each.first == name; });
  if (file == files.end()) return std::nullopt;
  auto machine =
      base::value_or_throw(predict::read_machine(folder / base::format("{}.conf", file->second)));
  // FlashAttention 1 in Triton, which knows no instructions of Hopper's: some 110 TFLOP/s on A100.
  if (has(line.at("source"), "llm-foundry")) {
    machine.share.attention = has(gpu, "a100") ? 0.35 : 0.165;
  }
  if (gpu == "a100-40") machine.node.memory_rate = 1.555e12;  // its data sheet
  if (gpu == "h100-96") machine.node.memory_rate = 2.4e12;    // HBM2e
  if (has(line.at("note"), "inter 800 Gb/s")) machine.network.rate = 12.5e9;
  return machine;
}

Precision precision_of(const std::string& word) {
  if (word == "fp32") return Precision::fp32;
  return has(word, "fp8") ? Precision::fp8 : Precision::bf16;
}

predict::Shape shape_of(const CsvLine& line) {
  predict::Shape shape;
  shape.layers = static_cast<int>(number(line, "layers", 0));
  shape.hidden = number(line, "hidden", 0);
  shape.heads = number(line, "heads", 1);
  shape.kv_heads = number(line, "kv_heads", shape.heads);
  shape.head_width = shape.hidden / shape.heads;
  shape.intermediate = number(line, "ffn", 4 * shape.hidden);
  shape.gated_mlp = line.at("mlp") == "swiglu";
  // GPT-2's where a row does not say: vTrain's code has it.
  shape.vocabulary = number(line, "vocab", 50257);
  shape.tied_head = line.at("mlp") == "gelu";
  shape.sequence = number(line, "seq", 0);
  return shape;
}

predict::Degrees degrees_of(const CsvLine& line) {
  return {.tensor = degree(line, "tp"),
          .context = degree(line, "cp"),
          .data = degree(line, "dp"),
          .pipeline = degree(line, "pp")};
}

predict::MicroBatches micro_batches_of(const CsvLine& line, const predict::Shape& shape) {
  predict::MicroBatches micro;
  micro.sequences = number(line, "mbs", 1);
  micro.count = static_cast<int>(
      std::max<std::int64_t>(1, number(line, "gbs", 1) / (micro.sequences * degree(line, "dp"))));
  const int pipeline = degree(line, "pp");
  const int virtual_stages = degree(line, "vp");
  if (pipeline > 1 && virtual_stages > 1) {
    micro.schedule = layout::ScheduleKind::interleaved;
    micro.virtual_stages = virtual_stages;
  }
  // Programs that count the embedding and the head among the layers leave one out at either end.
  const int positions = pipeline * micro.virtual_stages;
  if ((shape.layers + 2) % positions == 0 && shape.layers % positions != 0) {
    micro.stage_layers.assign(static_cast<std::size_t>(positions), (shape.layers + 2) / positions);
    --micro.stage_layers.front();
    --micro.stage_layers.back();
  }
  return micro;
}

Program program_of(const CsvLine& line, const Software& software) {
  auto program = software.program;
  program.precision = precision_of(line.at("precision"));
  constexpr std::array levels{Sharding::none, Sharding::optimizer, Sharding::gradients,
                              Sharding::parameters};
  program.sharding = levels.at(static_cast<std::size_t>(number(line, "zero", 0)));
  const auto& recompute = line.at("recompute");
  if (recompute == "full") {
    program.recompute.add(config::Activation::layer);
    // "full = no sequence parallel" (arXiv 2205.05198).
    if (has(line.at("note"), "full = no sequence parallel")) program.sequence_parallel = false;
  }
  if (recompute == "selective") program.recompute.add(config::Activation::attention);
  if (has(line.at("note"), "pure precision")) program.gradient_bytes = 2;
  return program;
}

}  // namespace

std::vector<PublicRow> read_public_rows(const std::filesystem::path& csv,
                                        const std::filesystem::path& machines) {
  constexpr std::array<std::string_view, 20> columns{"id",
                                                     "source",
                                                     "model",
                                                     "mlp",
                                                     "seq",
                                                     "gpu",
                                                     "gpus",
                                                     "tp",
                                                     "cp",
                                                     "pp",
                                                     "vp",
                                                     "dp",
                                                     "zero",
                                                     "mbs",
                                                     "gbs",
                                                     "recompute",
                                                     "precision",
                                                     "step_s",
                                                     "layout_complete",
                                                     "note"};
  std::vector<PublicRow> rows;
  for (const auto& line : read_csv(csv, columns)) {
    const auto& source = line.at("source");
    const auto& list = known_software();
    const auto software = std::find_if(list.begin(), list.end(), [&](const Software& each) {
      return source.starts_with(each.source);
    });
    auto machine = machine_of(line, machines);
    const bool complete = line.at("layout_complete") == "yes" && !line.at("step_s").empty();
    if (!complete || software == list.end() || !machine) continue;
    PublicRow row;
    row.id = line.at("id");
    row.stack = base::format("{}, {}, {}", line.at("gpu"), line.at("precision"), software->name);
    row.file = csv.filename().string();
    row.cell = base::format("{}, {} tokens, {} GPUs, batch {}, {}", line.at("model"),
                            line.at("seq"), line.at("gpus"), line.at("gbs"), row.stack);
    row.step.machine = *std::move(machine);
    row.step.workload.shape = shape_of(line);
    row.step.workload.degrees = degrees_of(line);
    row.step.workload.micro_batches = micro_batches_of(line, row.step.workload.shape);
    row.step.workload.program = program_of(line, *software);
    row.step.seconds = std::strtod(line.at("step_s").c_str(), nullptr);
    row.layout = base::format(
        "{} seq {} gpus {} tp {} cp {} pp {} vp {} dp {} zero {} micro-batch {} batch {} recompute "
        "{}",
        line.at("model"), line.at("seq"), line.at("gpus"), line.at("tp"), line.at("cp"),
        line.at("pp"), line.at("vp"), line.at("dp"), line.at("zero"), line.at("mbs"),
        line.at("gbs"), line.at("recompute"));
    row.batch = static_cast<double>(number(line, "gbs", 1));
    for (const auto* column : {"source", "model", "seq", "gpu", "precision", "tp", "cp", "pp", "vp",
                               "zero", "mbs", "recompute", "note"}) {
      row.family += line.at(column) + "; ";
    }
    const auto standing = predict::predict_step(row.step.machine, row.step.workload);
    if (!standing) {
      std::fputs(base::format("{} is left out: {}\n", row.id, standing.failure().text).c_str(),
                 stderr);
      continue;
    }
    rows.push_back(std::move(row));
  }
  if (!rows.empty()) return rows;
  throw base::Error(
      base::ExitCode::usage,
      base::format("{} has no row that can be predicted (complete, of a known program "
                   "and GPU); give another",
                   csv.string()));
}

}  // namespace trireme::perf
