// SPDX-License-Identifier: Apache-2.0
// trireme bench gemm
#include "trireme/base/counted.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/device/measure.hpp"

#include "apps/cli/commands.hpp"
#include "apps/cli/option_values.hpp"

#include <algorithm>
#include <charconv>
#include <memory>
#include <string_view>
#include <thread>

namespace trireme::apps {
namespace {

using base::format;
using device::DType;
using device::GemmShape;

/// The linear layers and the head of GPT-2 124M, at a micro-batch of 256 and of 1024 tokens.
const std::vector<std::string> gpt2_shapes{
    "256x768x2304",  "256x768x768",  "256x768x3072",  "256x3072x768",  "256x768x50257",
    "1024x768x2304", "1024x768x768", "1024x768x3072", "1024x3072x768", "1024x768x50257"};

struct GemmOptions {
  std::vector<std::string> shapes = gpt2_shapes;
  std::string precision = "both";
  std::string backend = "cpu";
  int threads = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  int repeats = 10;
  bool json = false;
};

/// "ROWSxINxOUT".
base::Result<GemmShape> shape_of(const std::string& text) {
  constexpr std::int64_t largest = 1 << 24;
  GemmShape shape;
  const char* at = text.data();
  const char* const end = at + text.size();
  for (auto* length : {&shape.rows, &shape.in, &shape.out}) {
    if (length != &shape.rows) {
      if (at == end || *at != 'x')
        *length = 0;
      else
        ++at;
    }
    const auto read = std::from_chars(at, end, *length);
    at = read.ptr;
    if (read.ec != std::errc{} || *length < 1 || *length > largest) {
      return base::usage_failure(
          format("--shape {} is not ROWSxINxOUT with lengths from 1 to {} "
                 "(as x [rows, in] times transpose(w [out, in])); try "
                 "--shape 1024x768x2304",
                 text, largest));
    }
  }
  if (at != end) {
    return base::usage_failure(
        format("--shape {} has more than three lengths; write ROWSxINxOUT", text));
  }
  return shape;
}

base::Result<std::unique_ptr<device::Kernels>> kernels_of(const GemmOptions& options) {
  if (options.backend == "cuda") return device::make_cuda_kernels(0);
  if (options.backend == "reference") return device::make_reference_kernels();
  return device::make_cpu_kernels(options.threads);
}

/// Peak that percentages refer to. A GPU's is the rate that its library reaches without other
/// limits: the peak of its data sheet needs a clock that it does not keep on real numbers.
device::PeakRate peak_of(device::Kernels& kernels, DType dtype, const GemmOptions& options) {
  if (kernels.device().is_host()) return device::measured_peak(dtype, options.threads);
  constexpr std::int64_t side = 8192;
  device::PeakRate best{0, "its products of 8192x8192x8192"};
  for (const auto& time : device::measure_gemms(kernels, dtype, {side, side, side}, 3)) {
    best.flops = std::max(best.flops, time.operations() / time.fastest_seconds);
  }
  return best;
}

std::string unit_text(const device::Kernels& kernels, const GemmOptions& options) {
  if (std::string_view(kernels.name()) == "cuda") return "a GPU";
  return base::counted(options.threads, "thread");
}

std::vector<DType> types_of(const std::string& precision) {
  if (precision == "fp32") return {DType::f32};
  if (precision == "bf16") return {DType::bf16};
  return {DType::f32, DType::bf16};
}

/// Raises the peak after a second measurement: one that was made while others used the cores is too
/// low, and GEMMs would exceed it.
void raise_peak(device::PeakRate& peak, const device::PeakRate& again, bool say, Context& context) {
  if (again.flops <= peak.flops) return;
  // Tolerance: clocks and neighbours make two measurements differ by a little.
  constexpr double worth_saying = 1.02;
  if (say && again.flops > worth_saying * peak.flops) {
    context.out.write(format("peak measured again: {:.1f} GFLOP/s\n", again.flops * 1e-9));
  }
  peak = again;
}

void write_json(Context& context, const GemmOptions& options, const device::GemmTime& time,
                const device::PeakRate& peak) {
  const double rate = time.operations() / time.median_seconds;
  const base::Json line{{"product", device::name(time.pass)},
                        {"backend", options.backend},
                        {"precision", time.dtype == DType::bf16 ? "bf16" : "fp32"},
                        {"rows", time.shape.rows},
                        {"in", time.shape.in},
                        {"out", time.shape.out},
                        {"threads", options.threads},
                        {"seconds", time.median_seconds},
                        {"fastest_seconds", time.fastest_seconds},
                        {"flops_per_second", rate},
                        {"peak_flops_per_second", peak.flops},
                        {"peak_instructions", peak.instructions}};
  context.out.write(base::json_text(line) + "\n");
}

void write_table(Context& context, const std::vector<device::GemmTime>& times,
                 const device::PeakRate& peak) {
  const auto& shape = times.front().shape;
  auto line =
      format("{:<5} {:>6} {:>6} {:>6}", times.front().dtype == DType::bf16 ? "bf16" : "fp32",
             shape.rows, shape.in, shape.out);
  for (const auto& time : times) {
    const double rate = time.operations() / time.median_seconds;
    line += format("   {:>8.1f} {:>4.0f} %", rate * 1e-9, 100 * rate / peak.flops);
  }
  context.out.write(line + "\n");
  context.out.flush();
}

base::ExitCode run_gemm(const GemmOptions& options, Context& context) {
  std::vector<GemmShape> shapes;
  for (const auto& text : options.shapes) shapes.push_back(base::value_or_throw(shape_of(text)));
  const auto kernels = base::value_or_throw(kernels_of(options));
  for (const auto dtype : types_of(options.precision)) {
    auto peak = peak_of(*kernels, dtype, options);
    if (!options.json) {
      context.out.write(format("{} peak of {}: {:.1f} GFLOP/s by {}; median of {} repeats\n",
                               dtype == DType::bf16 ? "bf16" : "fp32", unit_text(*kernels, options),
                               peak.flops * 1e-9, peak.instructions, options.repeats));
      context.out.write(
          "type    rows     in    out   GFLOP/s forward    backward input   backward weight\n");
    }
    for (const auto& shape : shapes) {
      const auto times = device::measure_gemms(*kernels, dtype, shape, options.repeats);
      raise_peak(peak, peak_of(*kernels, dtype, options), !options.json, context);
      if (!options.json) {
        write_table(context, times, peak);
        continue;
      }
      for (const auto& time : times) write_json(context, options, time, peak);
    }
  }
  return base::ExitCode::done;
}

Action prepare_gemm(CLI::App& app) {
  auto options = std::make_shared<GemmOptions>();
  app.add_option("--shape", options->shapes,
                 "Lengths of x [rows, in] and w [out, in]; the default is GPT-2 124M's layers")
      ->type_name("ROWSxINxOUT")
      ->default_str("");
  app.add_option("--precision", options->precision, "fp32, bf16 or both")
      ->type_name("TYPE")
      ->check(one_of({"fp32", "bf16", "both"}));
  app.add_option("--backend", options->backend, "cpu, reference or cuda")
      ->type_name("BACKEND")
      ->check(one_of({"cpu", "reference", "cuda"}));
  app.add_option("--threads", options->threads, "Compute threads; all cores by default")
      ->type_name("N")
      ->check(in_range(1, 4096).description(""));
  app.add_option("--repeats", options->repeats, "Measurements of each product")
      ->type_name("N")
      ->check(in_range(1, 1'000'000).description(""));
  app.add_flag("--json", options->json, "One JSON object a line for each product");
  return [options](Context& context) { return run_gemm(*options, context); };
}

}  // namespace

Command bench_gemm_command() {
  return {.name = "gemm",
          .summary = "Times matrix products by shape, beside the peak of the CPU or GPU",
          .details =
              "The three products of a linear layer: forward y = x * transpose(w), backward "
              "input dx = dy * w, backward weight dw += transpose(dy) * x. The peak is measured "
              "with operands in registers, at the same time on all threads, until it has settled: "
              "before and after each shape; shares refer to the best so far. A "
              "GPU's is the fastest of its products of 8192x8192x8192, and times on one hold "
              "what it takes to start a product and to learn of its end. "
              "On a machine that others use too, --repeats 30 and fastest_seconds of --json tell "
              "more than the median.",
          .prepare = prepare_gemm};
}

}  // namespace trireme::apps
