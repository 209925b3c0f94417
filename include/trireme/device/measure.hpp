// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/kernels.hpp"

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

namespace trireme::device {

/// The best of repeated measurements of a rate. The first ones are too low: clocks rise, the system
/// gives threads cores of their own, neighbours pause. So it goes on until the best has stood for a
/// while.
class SettledRate {
 public:
  using Clock = std::chrono::steady_clock;
  struct Patience {
    /// Time in which the best grows by less than 1 %.
    Clock::duration stands;
    /// Time of all measurements, at most.
    Clock::duration most;
    /// Measurements, however long one takes.
    int least = 3;
  };

  SettledRate(const Patience& patience, Clock::time_point begin)
      : patience_(patience), begin_(begin), grew_(begin) {}

  void add(double rate, Clock::time_point now);
  bool goes_on(Clock::time_point now) const;
  double best() const { return best_; }

 private:
  Patience patience_;
  Clock::time_point begin_;
  Clock::time_point grew_;
  /// The rate when it last grew.
  double stands_ = 0;
  double best_ = 0;
  int measurements_ = 0;
};

/// Most that this machine could do: multiplications and additions a second of `threads`
/// threads at once, with all operands in registers. bf16 GEMMs add in fp32.
struct PeakRate {
  double flops = 0;
  /// Instructions that reach it: "AVX-512 FMA", "AVX512-BF16", "AMX-BF16"…
  std::string instructions;
};
/// The fastest that the CPU has for the type, measured until it has settled: half a second at most
/// for each set of instructions.
PeakRate measured_peak(DType dtype, int threads);

/// Random numbers of the standard normal distribution times `scale`, those of the same shape, seed
/// and stream the same; a contiguous tensor of f32 or bf16 on any device. They repeat after 65521:
/// for measurements, because a processor's clock depends on the bits that change.
void fill_random(Kernels& kernels, const Tensor& tensor, std::uint64_t stream, float scale);

/// The three GEMMs of a linear layer.
enum class LinearPass { forward, backward_input, backward_weight };
/// "forward", "backward_input", "backward_weight".
const char* name(LinearPass pass);

struct GemmShape {
  std::int64_t rows = 0;
  std::int64_t in = 0;
  std::int64_t out = 0;
};

struct GemmTime {
  LinearPass pass = LinearPass::forward;
  DType dtype = DType::f32;
  GemmShape shape;
  double median_seconds = 0;
  double fastest_seconds = 0;

  double operations() const {
    return 2.0 * static_cast<double>(shape.rows) * static_cast<double>(shape.in) *
           static_cast<double>(shape.out);
  }
};

/// Times the three GEMMs of one shape in turn, on operands that are not zero.
std::vector<GemmTime> measure_gemms(Kernels& kernels, DType dtype, const GemmShape& shape,
                                    int repeats);

}  // namespace trireme::device
